"""The version of core."""

from __future__ import annotations

from importlib import metadata

_UNKNOWN = "0+unknown"


def _installed() -> str:
    try:
        return metadata.version("custom-pypto-core") or _UNKNOWN
    except Exception:
        # Missing or broken metadata: the ops work all the same.
        return _UNKNOWN


__version__ = _installed()
"""The version of the installed custom-pypto-core; ``0+unknown`` when that cannot be read."""
