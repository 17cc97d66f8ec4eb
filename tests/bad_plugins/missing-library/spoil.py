"""Delete the library, as a careless clean-up would."""

from __future__ import annotations

from pathlib import Path


def spoil(package: Path) -> None:
    (package / "lib" / "libcustom_pypto_missing_library.so").unlink()
