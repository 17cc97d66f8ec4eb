"""Which machine a linked library is for, by its ELF header."""

from __future__ import annotations

from pathlib import Path

from .errors import BuildError

_MACHINES = {
    21: "ppc64le",
    22: "s390x",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}


def machine(library: Path) -> str:
    """The machine that `library` was built for.

    Raises:
        BuildError: it is not a 64-bit ELF file.
    """
    with library.open("rb") as file:
        header = file.read(20)
    if header[:5] != b"\x7fELF\x02":
        raise BuildError(
            f"{library} is not a 64-bit ELF library; plugins are built for 64-bit Linux"
        )
    number = int.from_bytes(header[18:20], "little" if header[5] == 1 else "big")
    return _MACHINES.get(number, f"machine {number}")
