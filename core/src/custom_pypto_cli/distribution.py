"""The versions of installed distributions, looked up without importing them."""

from __future__ import annotations

from importlib import metadata

UNREADABLE = "(unreadable metadata)"


def version(name: str) -> str | None:
    """Return the version of the distribution ``name``, or None when it is not installed.

    `UNREADABLE` when its metadata is broken: the doctor must not stop there.
    """
    try:
        return metadata.version(name) or UNREADABLE
    except metadata.PackageNotFoundError:
        return None
    except Exception:
        return UNREADABLE
