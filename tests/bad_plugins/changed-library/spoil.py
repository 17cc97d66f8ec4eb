"""Append to the library, as a half-finished copy of another version would differ."""

from __future__ import annotations

from pathlib import Path


def spoil(package: Path) -> None:
    with (package / "lib" / "libcustom_pypto_changed_library.so").open("ab") as library:
        library.write(b"changed")
