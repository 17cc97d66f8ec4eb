"""Which instruction set the CPU kernels of a plugin use, as the plugin's library reports it."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from custom_pypto.core.errors import PluginError

QUERY = "custom_pypto_cpu_isa_v1"
VARIABLE = "CUSTOM_PYPTO_CPU_ISA"


def cpu_isa(library: Path) -> str | None:
    """Return the instruction set of the open library at `library`; None if it does not report one.

    Raises:
        PluginError: CUSTOM_PYPTO_CPU_ISA names one that the machine or the plugin lacks.
    """
    try:
        query = ctypes.CDLL(str(library))[QUERY]
    except AttributeError:
        return None
    query.restype = ctypes.c_char_p
    name: bytes | None = query()
    if name is None:
        forced = os.environ.get(VARIABLE, "")
        raise PluginError(
            f"{VARIABLE}={forced!r} names an instruction set that this machine lacks or"
            f" {library.name} has no kernels for"
        )
    return name.decode()
