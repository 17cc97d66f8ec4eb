"""The instruction sets that kernels are compiled for, and their flags, as core's headers say."""

from __future__ import annotations

from pathlib import Path

from .toml_file import read_toml


def of_machine(include: Path, machine: str, *, int8: bool = False) -> dict[str, tuple[str, ...]]:
    """The flags that compile for each instruction set of `machine`, by name.

    They are those in core's headers in `include`, and the macro that names the instruction set.
    With `int8` also the instruction sets that are for int8 sources alone.

    Raises:
        BuildError: core says nothing of instruction sets, or what it says cannot be read.
    """
    document = read_toml(include / "custom_pypto" / "cpu" / "isa.toml")
    further = document.get("int8", {}).get(machine, {}) if int8 else {}
    flags: tuple[str, ...] = ()
    found: dict[str, tuple[str, ...]] = {}
    for family in ("any", machine):
        for name, added in document.get(family, {}).items():
            flags = (*flags, *added)
            found[name] = flags
            for int8_name, own in further.get(name, {}).items():
                found[int8_name] = (*flags, *own)
    return {name: (f"-DCUSTOM_PYPTO_CPU_ISA={name}", *flags) for name, flags in found.items()}
