"""Where the repository is, the distributions in it, and copies of sources to build."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
BUILT = ("build", "*.egg-info", "__pycache__", "*.so", "custom_pypto_plugin.json", "functions.py")


def distributions(*patterns: str) -> dict[str, Path]:
    """Return the folders that `patterns` match, by the names of their distributions."""
    files = (file for each in patterns for file in sorted(ROOT.glob(f"{each}/pyproject.toml")))
    return {tomllib.loads(file.read_text())["project"]["name"]: file.parent for file in files}


def copy_sources(source: Path, folder: Path) -> Path:
    """Copy the project in `source` into `folder`, without what was built in it; give `folder`.

    Two test runs that share a checkout would otherwise build in each other's folders.
    """
    return shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*BUILT))
