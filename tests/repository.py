"""Where the repository is, and the distributions in it."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def distributions(*patterns: str) -> dict[str, Path]:
    """Return the folders that `patterns` match, by the names of their distributions."""
    files = (file for each in patterns for file in sorted(ROOT.glob(f"{each}/pyproject.toml")))
    return {tomllib.loads(file.read_text())["project"]["name"]: file.parent for file in files}
