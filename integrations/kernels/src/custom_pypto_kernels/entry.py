"""The ops of a plugin, which Hugging Face kernels loads from the unpacked wheel beside this file.

If the plugin is installed or was loaded before, this file uses that one; the version must be equal.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import custom_pypto.core
import torch
from custom_pypto.core import PluginRecord
from custom_pypto_contract import manifest
from custom_pypto_discovery.installed_plugin import op_family, uninstall

_HERE = Path(__file__).parent
(_FILE,) = _HERE.glob(f"wheel/*/{manifest.FILE_NAME}")
_PLUGIN = manifest.read(_FILE)


def _find() -> PluginRecord | None:
    return next((each for each in custom_pypto.core.plugins() if each.name == _PLUGIN.name), None)


def _load() -> PluginRecord:
    found = _find()
    if found is None or found.status == "rejected":
        if str(_FILE.parents[1]) not in sys.path:
            sys.path.append(str(_FILE.parents[1]))
        custom_pypto.core.load_new()
        found = _find()
    if found is None or found.status != "loaded":
        reason = "" if found is None else found.reason
        raise ImportError(f"the plugin {_PLUGIN.name!r} of {_HERE} was not loaded: {reason}")
    if (found.distribution, found.version) != (_PLUGIN.distribution, _PLUGIN.version):
        raise ImportError(
            f"{_HERE} has {_PLUGIN.distribution} {_PLUGIN.version}, but {found.distribution}"
            f" {found.version} is loaded, and a process can have one:"
            f" {uninstall(found.distribution)}, or write the folder from its wheel"
        )
    return found


_ops = {op_family(op.name) for op in _load().ops}
globals().update({name: getattr(torch.ops.custom_pypto, name) for name in _ops})
__all__ = sorted(_ops)
if (_HERE / "layers.py").is_file():
    layers = importlib.import_module(".layers", __name__)
    __all__ += ["layers"]
