"""The instruction sets that kernels are compiled for, and their flags, as core's headers say."""

from __future__ import annotations

from pathlib import Path

from .toml_table import read_toml


def of_machine(include: Path, machine: str) -> dict[str, tuple[str, ...]]:
    """The flags of each instruction set of `machine`, by name, from core's headers in `include`.

    Raises:
        BuildError: core says nothing of instruction sets, or what it says cannot be read.
    """
    document = read_toml(include / "custom_pypto" / "cpu" / "isa.toml")
    flags: tuple[str, ...] = ()
    found = {}
    for family in ("any", machine):
        for name, added in document.get(family, {}).items():
            flags = found[name] = (*flags, *added)
    return found
