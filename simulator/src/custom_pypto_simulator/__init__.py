"""Importing this package lets torch_npu, imported afterwards, run without an NPU and without CANN.

It is for tests of host-side logic: what is marshalled, in what order, and what happens when a call
fails. It says nothing of an NPU's speed or numerics.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import sys

from custom_pypto_simulator_build import build_libraries

from . import torchair_core
from .faults import damage as damage
from .faults import delay as delay
from .faults import disarm as disarm
from .faults import drain as drain
from .faults import fail as fail
from .faults import live_objects as live_objects
from .faults import lose_device as lose_device
from .faults import phase_1_calls as phase_1_calls


@functools.cache
def activate() -> None:
    """Makes ``import torch_npu`` find the simulator; a second call does nothing.

    The dynamic loader finds libraries that are loaded by their sonames.

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
    torchair_core.install()
    # Stream threads must not run while the interpreter and libtorch are torn down.
    atexit.register(drain)


activate()
