"""Which instruction sets the tests of every one know of."""

from __future__ import annotations

from cpp_library import INCLUDE
from custom_pypto_build import instruction_sets
from custom_pypto_testing.every_isa import every_isa


def test_every_isa_is_each_that_has_compiler_flags() -> None:
    flags = {
        isa
        for machine in ("x86_64", "aarch64")
        for isa in instruction_sets.of_machine(INCLUDE, machine, int8=True)
    }
    assert "portable" in flags
    assert sorted(every_isa()) == sorted(flags)
