"""Reads what the hook needs to know of a linked library: its machine, the names it exports."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .errors import BuildError

_MACHINES = {
    21: "ppc64le",
    22: "s390x",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
_DYNSYM = 11


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class Elf:
    """A 64-bit ELF file."""

    def __init__(self, path: Path) -> None:
        """Read the file `path`.

        Raises:
            BuildError: it is not a 64-bit ELF file.
        """
        self._bytes = path.read_bytes()
        if self._bytes[:5] != b"\x7fELF\x02":
            raise BuildError(
                f"{path} is not a 64-bit ELF library; plugins are built for 64-bit Linux"
            )
        self._order = "<" if self._bytes[5] == 1 else ">"
        (machine,) = self._unpack("H", 18)
        self.machine = _MACHINES.get(machine, f"machine {machine}")
        self._sections = list(self._read_sections())

    def exports(self) -> set[str]:
        """The names that the library defines for others."""
        names = set()
        for table in (s for s in self._sections if s.type == _DYNSYM):
            strings = self._contents(self._sections[table.link])
            for offset in range(table.offset, table.offset + table.size, 24):
                name, _, _, section = self._unpack("IBBH", offset)
                if section != 0:
                    names.add(self._string(strings, name))
        return names

    def _read_sections(self) -> Iterator[_Section]:
        (start,) = self._unpack("Q", 40)
        size, count = self._unpack("HH", 58)
        for index in range(count):
            yield _Section(*self._unpack("IIQQQQIIQQ", start + index * size))

    def _contents(self, section: _Section) -> bytes:
        return self._bytes[section.offset : section.offset + section.size]

    @staticmethod
    def _string(table: bytes, offset: int) -> str:
        return table[offset : table.index(b"\0", offset)].decode()

    def _unpack(self, layout: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from(self._order + layout, self._bytes, offset)
