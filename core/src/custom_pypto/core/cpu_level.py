"""Which instruction set level the CPU kernels of a plugin use, as the plugin's library says."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from custom_pypto.core.errors import PluginError

QUERY = "custom_pypto_cpu_isa_v1"
VARIABLE = "CUSTOM_PYPTO_CPU_ISA"


def cpu_level(library: Path) -> str | None:
    """Return the level of the open plugin library at `library`; None when it tells of none.

    Raises:
        PluginError: CUSTOM_PYPTO_CPU_ISA asks for a level that the machine or the plugin lacks.
    """
    try:
        query = ctypes.CDLL(str(library))[QUERY]
    except AttributeError:
        return None
    query.restype = ctypes.c_char_p
    name: bytes | None = query()
    if name is None:
        asked = os.environ.get(VARIABLE, "")
        raise PluginError(
            f"{VARIABLE}={asked!r} asks for a level that this machine lacks or {library.name} has"
            " no kernels for"
        )
    return name.decode()
