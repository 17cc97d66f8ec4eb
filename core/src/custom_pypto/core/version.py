"""The version of core."""

from __future__ import annotations

from importlib import metadata


def _installed() -> str:
    try:
        return metadata.version("custom-pypto-core")
    except metadata.PackageNotFoundError:
        return "0+unknown"


__version__ = _installed()
"""The version of the installed custom-pypto-core; ``0+unknown`` when run from a bare checkout."""
