"""Installed distributions, looked up without importing them."""

from __future__ import annotations

import re
from importlib import metadata

CORE = "custom-pypto-core"


def version(name: str) -> str | None:
    """Return the version of the distribution ``name``, or None when it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def normalized(name: str) -> str:
    """Return ``name`` in the form in which names are compared: lower case, with dashes."""
    return re.sub(r"[-_.]+", "-", name).lower()
