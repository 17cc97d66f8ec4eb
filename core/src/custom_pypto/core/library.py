"""A plugin's shared library, and the two C functions by which core has it register its ops."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from custom_pypto_contract.abi import REGISTER, UNREGISTER

from custom_pypto.core import launch_guard
from custom_pypto.core.errors import LoadError

_ERROR_SIZE = 16384

# torch's error macros end the text of a failed call of its stable ABI so.
_TORCH_CALL_FAILED = "API call failed at"


class LibraryError(LoadError):
    """A library cannot be opened, or failed to register its ops."""


class Library:
    """An open library. It stays mapped until the process ends, because its code may still run."""

    def __init__(self, path: Path) -> None:
        """Open the library at `path`; resolve its symbols now, and hide them from other libraries.

        Raises:
            LibraryError: the loader refused it, or it does not export core's interface.
        """
        self.path = path
        try:
            library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise LibraryError(
                f"the library cannot be opened: {error}{_hint(str(error))}"
            ) from None
        try:
            self._register = library[REGISTER]
            self._unregister = library[UNREGISTER]
        except AttributeError as error:
            raise LibraryError(
                f"the library {path} does not export core's interface ({error}); register its ops"
                " with CUSTOM_PYPTO_PLUGIN of custom_pypto/plugin.h"
            ) from None
        self._register.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        self._register.restype = ctypes.c_int
        self._unregister.argtypes = []
        self._unregister.restype = None
        launch_guard.guard(library, path)

    def register(self) -> None:
        """Register the library's ops with the dispatcher; all, or on an error none.

        Raises:
            LibraryError: the library's or torch's reason.
        """
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        if self._register(error, _ERROR_SIZE) == 0:
            return
        text = error.value.decode("utf-8", "replace").strip()
        raise LibraryError(f"registering its ops failed: {_reason(text) or 'it gave no reason'}")

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


def _reason(text: str) -> str:
    """Return torch's own reason when `text` says only which of its calls failed."""
    if _TORCH_CALL_FAILED not in text:
        return text
    try:
        what = ctypes.CDLL("libtorch_cpu.so").torch_exception_get_what_without_backtrace
    except (OSError, AttributeError):
        # torch has the function since 2.13.
        return text
    what.argtypes = []
    what.restype = ctypes.c_char_p
    reason: bytes | None = what()
    return reason.decode("utf-8", "replace").strip() if reason else text
