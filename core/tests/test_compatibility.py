"""Manifests compared with distribution and host: every refusal gives need, have and what to do.

tests/bad_plugins has manifests of another platform, distribution and version.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_discovery import discovery
from custom_pypto_discovery.host import Host, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin
from manifests import make_manifest

HOST = Host(platform="linux_x86_64", core_abi=(1, 3), core_version="0.4.0", torch=(2, 12))
MANIFEST = make_manifest()
INSTALLED = InstalledPlugin("first", "acme", "acme-first", "1.0", Path("/site/acme"))


def fault(host: Host = HOST, **forged: Any) -> str:
    """Return the fault of a plugin that is right except for these fields of its manifest."""
    return discovery.find_misfit(INSTALLED, replace(MANIFEST, **forged), host)


def fault_of(**installed: Any) -> str:
    """Return the fault of a plugin that is right except for these fields of its distribution."""
    return discovery.find_misfit(replace(INSTALLED, **installed), MANIFEST, HOST)


FITTING = {
    "nothing forged": {},
    "older minor ABI": {"core_abi": (1, 2)},
    "same ABI": {"core_abi": (1, 3)},
    "minor ABI that is compared as a number": {
        "core_abi": (1, 9),
        "host": replace(HOST, core_abi=(1, 10)),
    },
    "no library, every platform": {"platform": "any", "library": None},
    "same torch": {"torch_target": "2.12"},
    "minor torch that is compared as a number": {"torch_target": "2.9"},
    "newer major torch": {"torch_target": "2.13", "host": replace(HOST, torch=(3, 0))},
    "unknown torch": {"torch_target": "9.9", "host": replace(HOST, torch=None)},
}


@pytest.mark.parametrize("forged", FITTING.values(), ids=FITTING)
def test_plugin_that_fits_is_accepted(forged: dict[str, Any]) -> None:
    assert fault(**forged) == ""


CORE = "custom-pypto-core 0.4.0"
PLUGIN_IS_OLD = (
    f"requires core ABI 0.{{}}, but {CORE} offers 1.3. Upgrade the plugin: pip install --upgrade"
    f" acme-first; if there is no newer version, it has to be built again with {CORE}"
)
CORE_IS_OLD = (
    f"requires core ABI {{}}, but {CORE} offers 1.3. Upgrade core: in a clone of the project, `pip"
    " install --no-build-isolation ./core`"
)
TORCH_IS_OLD = (
    "requires torch {0} or newer, but torch 2.12 is installed. Upgrade it: pip install --upgrade"
    " 'torch>={0}'"
)
REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({"core_abi": (0, minor)}, PLUGIN_IS_OLD.format(minor)) for minor in (0, 3, 9)),
    ({"core_abi": (1, 4)}, CORE_IS_OLD.format("1.4")),
    ({"core_abi": (2, 0)}, CORE_IS_OLD.format("2.0")),
    ({"torch_target": "2.13"}, TORCH_IS_OLD.format("2.13")),
    ({"torch_target": "3.0"}, TORCH_IS_OLD.format("3.0")),
]


@pytest.mark.parametrize(("forged", "reason"), REFUSED)
def test_plugin_that_does_not_fit_is_refused(forged: dict[str, Any], reason: str) -> None:
    assert fault(**forged) == reason


def test_names_of_plugin_and_distribution_are_compared() -> None:
    assert fault_of(name="second") == (
        "its entry point calls it 'second', its manifest 'first'; give the entry point the plugin's"
        " name and build it again"
    )
    assert fault_of(distribution="Acme_First") == ""


# The host


def test_host_is_this_one() -> None:
    host = this_host(core="0.1.0", torch="2.13.0+cpu")
    assert (host.core_version, host.torch) == ("0.1.0", (2, 13))
    assert host.platform


def test_host_reads_versions_of_what_is_installed() -> None:
    assert this_host().torch is not None


def test_variable_for_cross_compiling_does_not_change_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = this_host().platform
    monkeypatch.setenv("_PYTHON_HOST_PLATFORM", "linux-toaster")
    assert this_host().platform == before
