"""The instruction sets that kernels are compiled for, and their flags, as core's headers say."""

from __future__ import annotations

from pathlib import Path

from .toml_table import read_toml


def of_machine(include: Path, machine: str) -> dict[str, tuple[str, ...]]:
    """The flags that compile for each instruction set of `machine`, by name.

    They are those in core's headers in `include`, and the macro that names the instruction set.

    Raises:
        BuildError: core says nothing of instruction sets, or what it says cannot be read.
    """
    document = read_toml(include / "custom_pypto" / "cpu" / "isa.toml")
    flags: tuple[str, ...] = ()
    found = {}
    for family in ("any", machine):
        for name, added in document.get(family, {}).items():
            flags = (*flags, *added)
            found[name] = (f"-DCUSTOM_PYPTO_CPU_ISA={name}", *flags)
    return found
