"""Preloads the simulated CANN libraries, so that the dynamic loader finds them by their sonames."""

from __future__ import annotations

import atexit
import ctypes
import functools
import sys

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
    # It needs torch's libraries, which `import torch` then finds loaded.
    for path in (*libraries.of_torch, libraries.ops):
        ctypes.CDLL(str(path))
    graph_calls.connect()
    # Stream threads must not run while the interpreter and libtorch are torn down.
    atexit.register(drain)
