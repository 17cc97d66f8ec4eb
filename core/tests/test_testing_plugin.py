"""The package custom_pypto_testing: what importing it and its pytest plugin imports, its names."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from cpp_library import INCLUDE
from custom_pypto_build import instruction_sets
from custom_pypto_testing.every_isa import every_isa


def imported_by(statement: str) -> list[str]:
    """The names among torch and custom_pypto that are imported after `statement`."""
    code = (
        f"import sys\n{statement}\nprint(*sorted(sys.modules.keys() & {{'torch', 'custom_pypto'}}))"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("module", ["custom_pypto_testing", "custom_pypto_testing.plugin"])
def test_import_imports_neither_torch_nor_core(module: str) -> None:
    assert imported_by(f"import {module}") == []


def test_asking_for_the_suite_imports_them() -> None:
    assert imported_by("from custom_pypto_testing import Conformance") == ["custom_pypto", "torch"]


def test_pytest_finds_the_plugin() -> None:
    values = [point.value for point in entry_points(group="pytest11")]
    assert "custom_pypto_testing.plugin" in values


def test_unknown_name_is_an_attribute_error() -> None:
    import custom_pypto_testing

    with pytest.raises(AttributeError, match="'custom_pypto_testing' has no attribute 'Nothing'"):
        _ = custom_pypto_testing.Nothing


def test_every_isa_is_each_that_has_compiler_flags() -> None:
    flags = {
        isa
        for machine in ("x86_64", "aarch64")
        for isa in instruction_sets.of_machine(INCLUDE, machine, int8=True)
    }
    assert "portable" in flags
    assert sorted(every_isa()) == sorted(flags)
