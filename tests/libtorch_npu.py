"""The functions that core's headers look up in libtorch_npu.so, and those that a library has.

Libraries are read, never loaded.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

_SYMBOL = re.compile(r'"(_Z\w+)"')
# Between the lines of a string literal.
_BREAK = re.compile(r'"\s+"')


def looked_up() -> set[str]:
    """The mangled names in core's headers, as they are installed."""
    headers = Path(package("custom_pypto"), "core", "include", "custom_pypto", "npu").glob("*.h")
    texts = [_BREAK.sub("", header.read_text("utf-8")) for header in headers]
    names = {name for text in texts for name in _SYMBOL.findall(text)}
    assert names, "no header names a function"
    return names


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
