"""Preloads the simulated CANN libraries, so that the dynamic loader finds them by their sonames."""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from custom_pypto_simulator_build import build_libraries

from . import graph_calls
from .faults import drain


@functools.cache
def activate() -> None:
    """Makes ``import torch_npu`` find the simulator; a second call does nothing.

    Raises ImportError when torch_npu was imported before, and BuildError when the libraries are not
    in the cache and cannot be built, or somebody else may have written them.
    """
    if "torch_npu" in sys.modules:
        raise ImportError(
            "custom_pypto_simulator must be imported before torch_npu, which looks for CANN when "
            "it is imported. With TORCH_DEVICE_BACKEND_AUTOLOAD not 0, torch imports torch_npu: "
            "import custom_pypto_simulator first, or use `custom-pypto-sim run -- CMD`"
        )
    libraries = build_libraries()
    for path in libraries.runtime:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    graph_calls.connect()
    sys.meta_path.insert(0, _OpsBeforeTorchNpu(libraries.ops))
    # Stream threads must not run while the interpreter and libtorch are torn down.
    atexit.register(drain)


class _OpsBeforeTorchNpu:
    """Loads libopapi.so, which needs libtorch, just before torch_npu is executed.

    Not when only its spec is looked up, as software does to check whether it is installed.
    """

    def __init__(self, ops: Path) -> None:
        self._ops = ops

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "torch_npu":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _OpsFirst(spec.loader, self._ops)
        return spec


class _OpsFirst(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, ops: Path) -> None:
        self._loader = loader
        self._ops = ops

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if "torch" not in sys.modules:
            _import_torch_alone()
        ctypes.CDLL(str(self._ops))
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)


def _import_torch_alone() -> None:
    """Imports torch without autoloading backends, because one of them is being imported."""
    variable = "TORCH_DEVICE_BACKEND_AUTOLOAD"
    before = os.environ.get(variable)
    os.environ[variable] = "0"
    try:
        importlib.import_module("torch")
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
