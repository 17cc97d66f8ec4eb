"""A plugin's shared library: it registers its ops, and compares first launches with headers."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from custom_pypto_contract.abi import NPU_COMPARE_BY, REGISTER, UNREGISTER

from custom_pypto.core.errors import LoadError, logger

_ERROR_SIZE = 16384

# As in kernel_report.h: symbol, library, types, arguments; text and its size.
_COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_char_p] * 4, ctypes.c_void_p, ctypes.c_size_t)
# Never freed: a thread may be in one.
_given: list[tuple[Callable[[object], None], object]] = []


class Library:
    """An open library. It stays mapped until the process ends, because its code may still run."""

    def __init__(self, path: Path) -> None:
        """Open the library at `path`; resolve its symbols now, and hide them from other libraries.

        Raises:
            LoadError: the loader refused it, or it does not export core's interface.
        """
        self.path = path
        try:
            library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise LoadError(f"the library cannot be opened: {error}{_hint(str(error))}") from None
        try:
            self._register = library[REGISTER]
            self._unregister = library[UNREGISTER]
        except AttributeError as error:
            raise LoadError(
                f"the library {path} does not export core's interface ({error}); register its ops"
                " with CUSTOM_PYPTO_PLUGIN of custom_pypto/plugin.h"
            ) from None
        self._register.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self._register.restype = ctypes.c_int
        self._unregister.argtypes = []
        self._unregister.restype = None
        give_comparison(library, path)

    def register(self) -> None:
        """Register the library's ops with the dispatcher; all, or on an error none.

        Raises:
            LoadError: the library's reason.
        """
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        if self._register(error, _ERROR_SIZE) == 0:
            return
        text = error.value.decode("utf-8", "replace").strip()
        raise LoadError(f"registering its ops failed: {text or 'it gave no reason'}")

    def unregister(self) -> None:
        """Drop everything that `register` registered; harmless when there is nothing."""
        self._unregister()


def _hint(loader_error: str) -> str:
    if "undefined symbol" not in loader_error:
        return ""
    return (
        "; a symbol of torch means that the plugin needs a newer torch, any other that it was"
        " linked without a library it uses"
    )


def give_comparison(library: ctypes.CDLL, path: Path) -> None:
    """Give the open plugin library the comparison, unless it launches no kernels."""
    try:
        compare_by = library[NPU_COMPARE_BY]
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
            mismatch = _find_mismatch(
                plugin, *map(os.fsdecode, (symbol, library, types, arguments))
            )
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

    mismatch, _ = compare(make_launch(symbol, types, arguments), plugin, Path(library))
    # The error begins with the kernel's name.
    return f"{mismatch.removeprefix(symbol)}\nRemedy: {REMEDY}" if mismatch else ""


@atexit.register
def _leave() -> None:
    """Have later launches, by threads that outlive Python, not call it."""
    for compare_by, _ in _given:
        compare_by(_COMPARE(0))
