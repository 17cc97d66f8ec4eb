"""The loaded simulated libraries."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path


class Runtime:
    """Handles of the simulated libraries, by soname."""

    def __init__(self) -> None:
        self._handles: dict[str, ctypes.CDLL] = {}

    @property
    def loaded(self) -> bool:
        """Whether anything is loaded."""
        return bool(self._handles)

    def add(self, path: Path, mode: int = ctypes.RTLD_GLOBAL) -> None:
        """Opens one library. Raises OSError."""
        self._handles[path.name] = ctypes.CDLL(str(path), mode=mode)

    def library(self, soname: str) -> ctypes.CDLL:
        """The handle of an open library. Raises RuntimeError when it is not open."""
        try:
            return self._handles[soname]
        except KeyError:
            raise RuntimeError(f"the simulated {soname} is not loaded") from None


runtime = Runtime()


def load_runtime(paths: Iterable[Path]) -> None:
    """Opens the libraries that do not need torch. Raises OSError."""
    for path in paths:
        runtime.add(path)
    acl = runtime.library("libascendcl.so")
    acl.custom_pypto_sim_fail.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    acl.custom_pypto_sim_calls.argtypes = [ctypes.c_char_p]
    acl.custom_pypto_sim_calls.restype = ctypes.c_uint64
    acl.custom_pypto_sim_armed.argtypes = [ctypes.c_char_p]
    acl.custom_pypto_sim_armed.restype = ctypes.c_bool
    acl.custom_pypto_sim_set_delay.argtypes = [ctypes.c_char_p, ctypes.c_double]
    acl.custom_pypto_sim_set_delay.restype = None
    acl.custom_pypto_sim_live.restype = ctypes.c_char_p
    acl.custom_pypto_sim_damage.restype = ctypes.c_char_p
    acl.custom_pypto_sim_drain.restype = None
