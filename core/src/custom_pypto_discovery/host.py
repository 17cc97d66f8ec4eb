"""The host of plugins: this machine, Python, torch and core."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_contract import platforms
from custom_pypto_contract.abi import CORE_ABI
from custom_pypto_contract.errors import how_to_install

from custom_pypto_discovery import distributions

CORE = "custom-pypto-core"
HOW_TO_INSTALL_OPS = f"each op is a wheel of its own: {how_to_install('./plugins/<name>')}"


@dataclass(frozen=True)
class Host:
    """The host that plugins must fit. `torch` is (major, minor), None when it is not known.

    Code is loaded from files of `trusted_owners` (user ids) alone.
    """

    platform: str
    core_abi: tuple[int, int] = CORE_ABI
    core_version: str = ""
    torch: tuple[int, int] | None = None
    trusted_owners: frozenset[int] = frozenset({0})


def this_host(core: str | None = None, torch: str | None = None) -> Host:
    """Return the host that this interpreter is; metadata say each version that is not given."""
    return Host(
        platform=platforms.host_platform_tag(),
        # A version that is not known rejects no plugin.
        core_version=distributions.version(CORE) or "" if core is None else core,
        torch=major_minor(distributions.version("torch") or "" if torch is None else torch),
        trusted_owners=frozenset({0, os.geteuid(), Path(__file__).stat().st_uid}),
    )


def major_minor(version: str) -> tuple[int, int] | None:
    """Return the first two numbers of `version`, or None."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return None if match is None else (int(match[1]), int(match[2]))
