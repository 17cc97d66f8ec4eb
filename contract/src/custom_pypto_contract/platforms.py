"""The platform that a plugin's library is built for."""

from __future__ import annotations

import os
import re
import sys
import sysconfig


def platform_tag() -> str:
    """The platform of this interpreter in the form that wheels use, such as ``linux_aarch64``.

    ``CUSTOM_PYPTO_PLATFORM`` names the machine of a wheel for other systems, and
    ``_PYTHON_HOST_PLATFORM`` overrides it, as everywhere in Python packaging, when cross-compiling.
    """
    # Core imports this module, and needs neither of these.
    from . import manylinux, variables

    chosen = manylinux.parse(os.environ.get(variables.PLATFORM, ""))
    return f"linux_{chosen[1]}" if chosen else _tag(sysconfig.get_platform())


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
