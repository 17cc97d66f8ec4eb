"""The package custom_pypto_testing: its pytest plugin, its names, its instruction sets."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from custom_pypto_build import compiler
from custom_pypto_testing.every_isa import every_isa


def test_pytest_finds_the_plugin() -> None:
    values = [point.value for point in entry_points(group="pytest11")]
    assert "custom_pypto_testing.plugin" in values


def test_unknown_name_is_an_attribute_error() -> None:
    import custom_pypto_testing

    with pytest.raises(AttributeError, match="'custom_pypto_testing' has no attribute 'Nothing'"):
        _ = custom_pypto_testing.Nothing


def test_every_isa_is_each_that_has_compiler_flags() -> None:
    flags = {
        isa for machine in ("x86_64", "aarch64") for isa in compiler.isa_flags(machine, int8=True)
    }
    assert "portable" in flags
    assert sorted(every_isa()) == sorted(flags)
