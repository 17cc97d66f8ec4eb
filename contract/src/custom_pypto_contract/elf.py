"""What the tables of an ELF library say that it needs and was built for; runs nothing.

The library may be anybody's: reading it takes bounded time and memory. The section headers are
read, which `strip` leaves, and not the program headers, which the loader reads.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

_MACHINES = {
    21: "ppc64le",
    22: "s390x",
    62: "x86_64",
    183: "aarch64",
    243: "riscv64",
    258: "loongarch64",
}
# abi.h writes a note of this owner and type.
_ABI_NOTE = (b"custom_pypto\0", 1)

# Types of sections, tags of dynamic entries, and properties of symbols, as <elf.h> has them.
_DYNAMIC, _NOTE, _DYNSYM, _VERSYM = 6, 7, 11, 0x6FFFFFFF
_RPATH, _RUNPATH = 15, 29
_WEAK = 2

_MOST_ENTRIES = 1 << 14
_MOST_NAME = 4096


class ElfError(ValueError):
    """A file is no ELF library that can be read; the text is a predicate: "is damaged"."""


@dataclass(frozen=True)
class ElfLibrary:
    """A 64-bit library.

    `machine`: as in a wheel's tag. `run_paths`: where the loader looks for other libraries.
    `unversioned`: symbols that it needs from libraries without symbol versions; weak symbols are
    left out. `core_abi`: the version in the `abi.h` that it was compiled with; None if it records
    none.
    """

    machine: str
    run_paths: tuple[str, ...]
    unversioned: tuple[str, ...]
    core_abi: tuple[int, int] | None


def read(contents: bytes) -> ElfLibrary:
    """Return what the library with `contents` says.

    Raises:
        ElfError: it is no 64-bit ELF library, is damaged, or has unusually many symbols.
    """
    if contents[:5] != b"\x7fELF\x02":
        raise ElfError("is not a 64-bit ELF library")
    try:
        return _File(contents).library()
    except (IndexError, OverflowError, struct.error):
        raise ElfError("is a damaged ELF library: a table leads out of the file") from None


class _Section(NamedTuple):
    type: int
    offset: int
    size: int
    link: int
    alignment: int


class _File:
    def __init__(self, contents: bytes) -> None:
        self._contents = contents
        self._order = "<" if contents[5] == 1 else ">"
        self._read = 0
        (self._machine,) = self._unpack("H", 18)
        (start,) = self._unpack("Q", 40)
        size, count = self._unpack("HH", 58)
        self._sections = [
            _Section(*self._unpack("4xI16xQQI4xQ", start + index * size)) for index in range(count)
        ]

    def library(self) -> ElfLibrary:
        return ElfLibrary(
            machine=_MACHINES.get(self._machine, f"machine {self._machine}"),
            run_paths=tuple(self._run_paths()),
            unversioned=tuple(self._unversioned()),
            core_abi=self._core_abi(),
        )

    def _run_paths(self) -> Iterator[str]:
        for section in self._of_type(_DYNAMIC):
            for tag, value in self._entries(section, "qQ"):
                if tag in (_RPATH, _RUNPATH):
                    yield from self._text(section, value).split(":")

    def _unversioned(self) -> Iterator[str]:
        tables = self._of_type(_DYNSYM)
        if not tables:
            raise ElfError("has no section with its dynamic symbols")
        # The highest bit marks a version that is not the default; 0 and 1 are no version.
        has_version = [
            number & 0x7FFF > 1
            for section in self._of_type(_VERSYM)
            for (number,) in self._entries(section, "H")
        ]
        for index, (start, info, section) in enumerate(self._entries(tables[0], "IBxH16x")):
            name, is_versioned = self._text(tables[0], start), has_version and has_version[index]
            if not section and name and info >> 4 != _WEAK and not is_versioned:
                yield name

    def _core_abi(self) -> tuple[int, int] | None:
        for section in self._of_type(_NOTE):
            position, end = section.offset, section.offset + section.size
            while position + 12 <= end:
                self._count(1)
                name_size, size, kind = self._unpack("III", position)
                name = position + 12
                value = _align(name + name_size, section.alignment)
                if (self._contents[name : name + name_size], kind) == _ABI_NOTE and size == 8:
                    major, minor = self._unpack("II", value)
                    return major, minor
                position = _align(value + size, section.alignment)
        return None

    def _of_type(self, kind: int) -> list[_Section]:
        return [each for each in self._sections if each.type == kind]

    def _entries(self, section: _Section, form: str) -> Iterator[tuple[Any, ...]]:
        size = struct.calcsize(self._order + form)
        count = section.size // size
        self._count(count)
        for index in range(count):
            yield self._unpack(form, section.offset + index * size)

    def _text(self, section: _Section, start: int) -> str:
        """Return the text at `start` of the names that belong to `section`."""
        begin = self._sections[section.link].offset + start
        end = self._contents.find(b"\0", begin, begin + _MOST_NAME)
        if end < 0:
            raise ElfError(f"has a name that does not end within {_MOST_NAME} bytes")
        return self._contents[begin:end].decode("ascii", "backslashreplace")

    def _unpack(self, form: str, offset: int) -> tuple[Any, ...]:
        return struct.unpack_from(self._order + form, self._contents, offset)

    def _count(self, entries: int) -> None:
        """Add to the number of entries that are read, in all tables."""
        self._read += entries
        if self._read > _MOST_ENTRIES:
            raise ElfError(f"has more than {_MOST_ENTRIES} entries in its tables")


def _align(position: int, alignment: int) -> int:
    step = 8 if alignment == 8 else 4
    return -(-position // step) * step
