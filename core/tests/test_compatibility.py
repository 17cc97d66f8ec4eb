"""Manifests compared with distribution and host: every refusal gives need, have and what to do.

tests/bad_plugins has manifests of another platform, distribution and version.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_discovery import compatibility
from custom_pypto_discovery.host import Host, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin
from manifests import make_manifest

HOST = Host(platform="linux_x86_64", core_abi=(1, 3), core_version="0.4.0", torch=(2, 12))
MANIFEST = make_manifest()
INSTALLED = InstalledPlugin("first", "acme", "acme-first", "1.0", Path("/site/acme"))


def fault(host: Host = HOST, **forged: Any) -> str:
    """Return the fault of a plugin that is right except for these fields of its manifest."""
    return compatibility.find_fault(INSTALLED, replace(MANIFEST, **forged), host)


def fault_of(**installed: Any) -> str:
    """Return the fault of a plugin that is right except for these fields of its distribution."""
    return compatibility.find_fault(replace(INSTALLED, **installed), MANIFEST, HOST)


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


@pytest.mark.parametrize("abi", [(1, 4), (2, 0)])
def test_newer_abi_is_refused(abi: tuple[int, int]) -> None:
    assert fault(core_abi=abi) == (
        f"requires core ABI {abi[0]}.{abi[1]}, but custom-pypto-core 0.4.0 offers 1.3. Upgrade"
        " core: in a clone of the project, `pip install --no-build-isolation ./core`"
    )


def test_older_major_abi_is_refused_whatever_its_minor() -> None:
    for minor in (0, 3, 9):
        assert fault(core_abi=(0, minor)) == (
            f"requires core ABI 0.{minor}, but custom-pypto-core 0.4.0 offers 1.3. Upgrade the"
            " plugin: pip install --upgrade acme-first; if there is no newer version, it has to be"
            " built again with custom-pypto-core 0.4.0"
        )


def test_older_torch_than_the_plugin_needs_is_refused() -> None:
    assert fault(torch_target="2.13") == (
        "requires torch 2.13 or newer, but torch 2.12 is installed. Upgrade it:"
        " pip install --upgrade 'torch>=2.13'"
    )


def test_major_versions_of_torch_come_before_minor_ones() -> None:
    assert fault(torch_target="3.0").startswith("requires torch 3.0 or newer, but torch 2.12 is")


# Identity


def test_entry_point_with_another_name_than_the_manifest_is_refused() -> None:
    assert fault_of(name="second") == (
        "its entry point calls it 'second', its manifest 'first'; give the entry point the plugin's"
        " name and build it again"
    )


def test_names_of_distributions_are_compared_normalized() -> None:
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
