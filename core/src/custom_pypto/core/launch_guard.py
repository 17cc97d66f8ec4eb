"""Has the library of a plugin compare each kernel's first launch with the kernel's header."""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Callable
from pathlib import Path

from custom_pypto.core.errors import logger

_COMPARE_BY = "custom_pypto_npu_compare_by_v1"
# Of kernel_report.h: symbol, library, types, arguments; text and its size.
_COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_char_p] * 4, ctypes.c_void_p, ctypes.c_size_t)
# Never freed: a thread may be in one.
_given: list[tuple[Callable[[object], None], object]] = []


def guard(library: ctypes.CDLL, path: Path) -> None:
    """Give the open plugin library the comparison; nothing if it launches no kernels."""
    try:
        compare_by = library[_COMPARE_BY]
    except AttributeError:
        return
    compare_by.argtypes = [_COMPARE]
    compare_by.restype = None
    compare = _COMPARE(_comparison(path))
    compare_by(compare)
    _given.append((compare_by, compare))


def _comparison(plugin: Path) -> Callable[..., int]:
    def compare(
        symbol: bytes, library: bytes, types: bytes, arguments: bytes, text: int, size: int
    ) -> int:
        try:
            mismatch = _find_mismatch(plugin, *map(_decode, (symbol, library, types, arguments)))
            written = mismatch.encode("utf-8", "replace")[: size - 1]
            ctypes.memmove(text, written, len(written))
        except Exception:
            # What cannot be compared is launched.
            logger.exception("a launch could not be compared with its header")
            return 0
        return int(bool(mismatch))

    return compare


def _find_mismatch(plugin: Path, symbol: str, library: str, types: str, arguments: str) -> str:
    # Most processes launch nothing.
    from custom_pypto_contract.aclnn_launch import REMEDY, make_launch

    from custom_pypto.core.kernel_headers import compare

    launch = make_launch(symbol, types, arguments)
    mismatch = compare(launch, plugin, Path(library)).mismatch
    # The error begins with the kernel's name.
    return f"{mismatch.removeprefix(symbol)}\nRemedy: {REMEDY}" if mismatch else ""


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


@atexit.register
def _leave() -> None:
    """Have later launches, by threads that outlive Python, not call it."""
    for compare_by, _ in _given:
        compare_by(_COMPARE(0))
