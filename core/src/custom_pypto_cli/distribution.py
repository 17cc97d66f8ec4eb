"""The versions of installed distributions, looked up without importing them."""

from __future__ import annotations

from custom_pypto_discovery import distributions

UNREADABLE = "(unreadable metadata)"


def version(name: str) -> str | None:
    """Return the version of the distribution ``name``, or None when it is not installed.

    `UNREADABLE` when its metadata is broken: the doctor must not stop there.
    """
    found = distributions.version(name)
    return None if found is None else found or UNREADABLE
