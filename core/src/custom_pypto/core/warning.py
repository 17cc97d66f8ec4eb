"""Warns at the line of the user's code that called core."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from custom_pypto.core.errors import PluginWarning

# With the separator, because packages of plugins begin with the same letters.
_PACKAGE = str(Path(__file__).parent.parent) + os.sep


def warn(text: str, category: type[PluginWarning] = PluginWarning) -> None:
    """Warn with `text`. Raises `category` when warnings are errors."""
    warnings.warn(text, category, stacklevel=_distance() + 1)


def _distance() -> int:
    """Return how many frames the caller of `warn` is away from code outside this package."""
    frame = sys._getframe(1)
    distance = 0
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        # `warnings` does not count the frames of the import machinery either.
        if "importlib" not in name or "_bootstrap" not in name:
            if not name.startswith(_PACKAGE):
                break
            distance += 1
        frame = frame.f_back
    return distance
