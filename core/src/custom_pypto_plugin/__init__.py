"""What the author of a plugin imports: `hookimpl` and the records that hooks return.

Importing it loads nothing: neither torch, nor core, nor any plugin. docs/hooks.md has an example of
each hook.
"""

from __future__ import annotations

from custom_pypto_plugin.contributions import Autograd, Reference, SampleInput
from custom_pypto_plugin.hookspecs import hookimpl

__all__ = ["Autograd", "Reference", "SampleInput", "hookimpl"]
