"""The functions that a library has, which is read, never loaded."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path


def exported(library: Path) -> set[str]:
    """The names that a library defines for others, as binutils' nm lists them."""
    command = ["nm", "--dynamic", "--defined-only", "--format=just-symbols", str(library)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.partition("@")[0] for line in listed.splitlines()}


def package(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    found = importlib.util.find_spec(name)
    assert found is not None, f"{name} is not installed"
    return Path(next(iter(found.submodule_search_locations or ())))
