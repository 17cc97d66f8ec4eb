"""The platforms of libraries and wheels."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from typing import NamedTuple

_GLIBC = {"1": "_2_5", "2010": "_2_12", "2014": "_2_17"}
"""The glibc of the first three manylinux tags."""


class Linux(NamedTuple):
    """The systems that a platform tag is for; without a glibc, it promises none."""

    glibc: tuple[int, int] | None
    machine: str


def parse(platform: str) -> Linux | None:
    """Return the systems of a tag such as ``manylinux_2_28_x86_64``; None for another system's."""
    found = re.fullmatch(r"(?:manylinux(1|2010|2014|_\d+_\d+)|linux)_([a-z]\w*)", platform)
    if found is None:
        return None
    if found[1] is None:
        return Linux(None, found[2])
    _, major, minor = _GLIBC.get(found[1], found[1]).split("_")
    return Linux((int(major), int(minor)), found[2])


def platform_tag() -> str:
    """The platform of this interpreter in the form that wheels use, such as ``linux_aarch64``.

    ``CUSTOM_PYPTO_PLATFORM`` names the machine of a wheel for other systems, and
    ``_PYTHON_HOST_PLATFORM`` overrides it, as everywhere in Python packaging, when cross-compiling.
    """
    # Core imports this module, and does not need that one.
    from . import variables

    chosen = parse(os.environ.get(variables.PLATFORM, ""))
    return f"linux_{chosen.machine}" if chosen else _tag(sysconfig.get_platform())


def host_platform_tag() -> str:
    """The same for this machine, whatever ``_PYTHON_HOST_PLATFORM`` says."""
    if sys.platform != "linux":
        return platform_tag()
    host = os.uname()
    return _tag(f"{host.sysname}-{host.machine}")


def machine(tag: str) -> str:
    """The machine of a Linux platform tag: ``linux_x86_64`` gives ``x86_64``."""
    return tag.removeprefix("linux_")


def _tag(platform: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", platform.lower())
