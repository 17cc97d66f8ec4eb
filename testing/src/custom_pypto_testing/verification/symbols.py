"""The functions of torch_npu and CANN that core's headers look up by name."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from custom_pypto import core
from custom_pypto_contract.abi import TORCH_NPU

from .finding import Finding

_HEADERS = Path(core.__file__).parent / "include" / "custom_pypto" / "npu"
_LIBRARY = "libtorch_npu.so"
_FIND = "_Z16GetOpApiFuncAddrPKc"
_OF_TORCH_NPU = re.compile(r'"(_Z\w+)"')
_OF_ACLNN = re.compile(r'find_in_aclnn\("(\w+)"')
_OF_LIBRARY = re.compile(r'find_loaded\("(lib\w+\.so)", "((?!_Z)\w+)"')
# Between the lines of a string literal.
_BREAK = re.compile(r'"\s+"')


def looked_up() -> set[str]:
    """Return the functions of libtorch_npu.so, by their mangled names."""
    names = set(_OF_TORCH_NPU.findall(_headers()))
    assert names, "no header names a function"
    return names


def check_symbols() -> Finding:
    """libtorch_npu.so has the functions that core looks up. Also tells which CANN has not.

    torch_npu must be imported.
    """
    library = ctypes.CDLL(_LIBRARY)
    names = looked_up()
    missing = sorted(name for name in names if not hasattr(library, name))
    if missing:
        supported = f"torch_npu {TORCH_NPU[0]} to {TORCH_NPU[-1]}"
        problem = f"{_LIBRARY} has no {', '.join(missing)}; install {supported}"
        return Finding("", problem, {"missing": missing})
    absent = [name for name, is_there in _of_cann(library) if not is_there]
    text = f"{_LIBRARY} has all {len(names)}"
    if absent:
        # Launches go on without most of them.
        text = f"{text}; CANN has no {', '.join(absent)}"
    return Finding(text, numbers={"absent_in_cann": absent})


def _of_cann(torch_npu: ctypes.CDLL) -> Iterator[tuple[str, bool]]:
    """Yield the functions of CANN, and whether they are there."""
    find: Any = torch_npu[_FIND]
    find.argtypes, find.restype = [ctypes.c_char_p], ctypes.c_void_p
    headers = _headers()
    for name in dict.fromkeys(_OF_ACLNN.findall(headers)):
        yield name, find(name.encode()) is not None
    for library, name in dict.fromkeys(_OF_LIBRARY.findall(headers)):
        yield name, _has(library, name)


def _has(library: str, name: str) -> bool:
    try:
        return hasattr(ctypes.CDLL(library), name)
    except OSError:
        return False


def _headers() -> str:
    return _BREAK.sub("", "\n".join(each.read_text("utf-8") for each in _HEADERS.glob("*.h")))
