"""Opening a plugin's library and calling its two functions, without a dispatcher behind them.

tests/bad_plugins has libraries that cannot be opened.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import pytest
import torch  # noqa: F401  # loads libtorch
from custom_pypto.core.library import Library, LibraryError

HEALTHY = """
int custom_pypto_register_v1(char* error, unsigned long size) { return 0; }
void custom_pypto_unregister_v1(void) {}
"""
REFUSING = """
#include <string.h>
int custom_pypto_register_v1(char* error, unsigned long size) {
  const char* text = TEXT;
  if (strlen(text) + 1 < size) strcpy(error, text);
  return 1;
}
void custom_pypto_unregister_v1(void) {}
"""


def build(folder: Path, code: str, *flags: str) -> Path:
    source = folder / "library.c"
    source.write_text(code, encoding="utf-8")
    compiler = os.environ.get("CC", "cc").split()
    library = folder / "library.so"
    subprocess.run([*compiler, "-shared", "-fPIC", *flags, source, "-o", library], check=True)
    return library


def registration_error(folder: Path, text: str) -> str:
    library = Library(build(folder, REFUSING, f"-DTEXT={text}"))
    with pytest.raises(LibraryError) as caught:
        library.register()
    said, _, text = str(caught.value).partition(": ")
    assert said == "registering its ops failed"
    return text


def test_symbols_of_a_library_are_seen_by_nobody_else(tmp_path: Path) -> None:
    Library(build(tmp_path, HEALTHY + "int custom_pypto_test_library_symbol;"))
    with pytest.raises(ValueError, match="undefined symbol"):
        ctypes.c_int.in_dll(ctypes.CDLL(None), "custom_pypto_test_library_symbol")


def test_failed_registration_without_a_text_is_reported(tmp_path: Path) -> None:
    assert registration_error(tmp_path, '""') == "it gave no reason"


def test_text_that_is_no_utf_8_is_shown_all_the_same(tmp_path: Path) -> None:
    assert registration_error(tmp_path, '"caf\\xe9"') == "caf\N{REPLACEMENT CHARACTER}"


def test_torchs_own_reason_is_preferred_when_the_text_only_names_its_call(tmp_path: Path) -> None:
    libtorch = ctypes.CDLL("libtorch_cpu.so")
    library = ctypes.c_void_p()
    libtorch.aoti_torch_library_init_fragment(b"test_library", b"", 0, ctypes.byref(library))
    libtorch.aoti_torch_library_def(library, b"op(Tonsor x) -> Tensor")
    text = '"aoti_torch_library_def(...) API call failed at library.h, line 1"'
    assert "Tonsor" in registration_error(tmp_path, text)
