"""Where the repository is, and copies of sources to build."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ("build", "*.egg-info", "__pycache__", "*.so", "custom_pypto_plugin.json", "ops.py")


def copy_sources(source: Path, folder: Path) -> Path:
    """Copy the project in `source` into `folder`, without what was built in it; give `folder`.

    Two test runs that share a checkout would otherwise build in each other's folders.
    """
    return shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*BUILT))
