"""Which Linux systems a library runs on, by the versions of symbols that it needs.

The tag ``manylinux_2_28_x86_64`` promises that a wheel runs where glibc is 2.28 or newer (PEP 600).
Versions of libstdc++ belong to the glibc of the systems that brought them.
"""

from __future__ import annotations

import re

Glibc = tuple[int, int]

_ALIASES: dict[str, Glibc] = {
    "manylinux1": (2, 5),
    "manylinux2010": (2, 12),
    "manylinux2014": (2, 17),
}
# The newest versions of GLIBCXX_3.4 and CXXABI_1.3 that a manylinux with this glibc has.
_LIBSTDCXX = {
    (2, 5): (8, 1),
    (2, 12): (13, 3),
    (2, 17): (19, 7),
    (2, 24): (22, 10),
    (2, 27): (24, 11),
    (2, 31): (28, 12),
    (2, 34): (29, 13),
    (2, 35): (30, 13),
    (2, 39): (33, 15),
}
OLDEST: Glibc = (2, 17)
"""No torch that plugins work with runs below this."""
UNKNOWN: Glibc = (99, 0)
"""Stands for that of a version which is newer than any here, or private to a library."""
_VERSION = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)*)")


def parse(platform: str) -> tuple[Glibc | None, str] | None:
    """Return the glibc and the machine of a platform tag; None if it is not for a Linux with glibc.

    The tag ``linux_x86_64`` promises no glibc.
    """
    if found := re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", platform):
        return (int(found[1]), int(found[2])), found[3]
    if found := re.fullmatch(r"(manylinux\d+)_(\w+)", platform):
        return (_ALIASES[found[1]], found[2]) if found[1] in _ALIASES else None
    if found := re.fullmatch(r"linux_(\w+)", platform):
        return None, found[1]
    return None


def glibc_of(version: str) -> Glibc:
    """Return the oldest glibc whose systems have a version such as ``GLIBCXX_3.4.26``.

    That is `UNKNOWN` for one that is newer than any here or private, and (2, 0) for one of another
    library.
    """
    if version == "GLIBC_ABI_DT_RELR":
        return 2, 36
    found = _VERSION.fullmatch(version)
    if found is None:
        return UNKNOWN if version.startswith("GLIBC_") else (2, 0)
    numbers = [*map(int, found[2].split(".")), 0, 0]
    if found[1] == "GLIBC":
        return numbers[0], numbers[1]
    column = 0 if found[1] == "GLIBCXX" else 1
    return next((glibc for glibc, row in _LIBSTDCXX.items() if row[column] >= numbers[2]), UNKNOWN)
