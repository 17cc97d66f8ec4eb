"""The API for authors of plugins: `hookimpl` and the records that hooks return.

`op_function` is what the build writes into a plugin's ``ops.py``. Importing this loads
nothing: neither torch, nor core, nor any plugin. docs/hooks.md has an example of each hook.
"""

from __future__ import annotations

from custom_pypto_plugin.contributions import Autograd, Reference, SampleInput
from custom_pypto_plugin.hookspecs import hookimpl
from custom_pypto_plugin.op_functions import op_function

__all__ = ["Autograd", "Reference", "SampleInput", "hookimpl", "op_function"]
