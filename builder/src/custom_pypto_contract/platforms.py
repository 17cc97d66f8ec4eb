"""The platform that a plugin's library is built for."""

from __future__ import annotations

import re
import sysconfig


def platform_tag() -> str:
    """The platform of this interpreter in the form that wheels use, such as ``linux_aarch64``.

    ``_PYTHON_HOST_PLATFORM`` overrides it, as everywhere in Python packaging, when cross-compiling.
    """
    return re.sub(r"[^a-z0-9]", "_", sysconfig.get_platform().lower())


def machine(tag: str) -> str:
    """The machine of a Linux platform tag: ``linux_x86_64`` gives ``x86_64``."""
    return tag.removeprefix("linux_")
