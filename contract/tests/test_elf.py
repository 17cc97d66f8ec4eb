"""The reader of ELF libraries, on compiled ones and on what somebody made of them."""

import os
import platform
import random
import struct
import subprocess

import pytest
from custom_pypto_contract import elf
from custom_pypto_contract.elf import ElfError, ElfLibrary

SOURCE = """
#include <math.h>
__attribute__((section(".note.custom_pypto"), used, aligned(4))) static const struct {
  unsigned sizes_and_type[3]; char name[16]; unsigned version[2];
} note = {{13, 8, 1}, "custom_pypto", {3, 7}};
extern int from_another_library(void);
extern int perhaps(void) __attribute__((weak));
int offered(double x) {
  return (int)sqrt(x) + (perhaps ? perhaps() : 0) + from_another_library();
}
"""


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("elf")
    source, library = folder / "library.c", folder / "library.so"
    source.write_text(SOURCE, encoding="utf-8")
    compiler = os.environ.get("CC", "cc").split()
    flags = ["-shared", "-fPIC", "-fno-builtin", "-Wl,--no-as-needed"]
    run_path = "-Wl,-rpath,/somewhere:$ORIGIN"
    subprocess.run([*compiler, *flags, run_path, source, "-lm", "-o", library], check=True)
    return library.read_bytes()


@pytest.fixture(scope="module")
def library(contents: bytes) -> ElfLibrary:
    return elf.read(contents)


def test_what_a_library_says(library: ElfLibrary) -> None:
    assert library.machine == platform.machine()
    assert library.run_paths == ("/somewhere", "$ORIGIN")
    # Not sqrt, which has a version of glibc, nor those that it may lack.
    assert library.unversioned == ("from_another_library",)
    assert library.core_abi == (3, 7)


def test_core_abi_of_a_library_without_the_note_is_none(contents: bytes) -> None:
    assert elf.read(contents.replace(b"custom_pypto\0", b"custom_pypta\0")).core_abi is None


@pytest.mark.parametrize("given", [b"", b"\x7fELF\x01" + bytes(100), b"PK\3\4" + bytes(100)])
def test_what_is_no_library_is_refused(given: bytes) -> None:
    with pytest.raises(ElfError, match=r"^is not a 64-bit ELF library$"):
        elf.read(given)


def test_library_that_was_cut_off_is_refused(contents: bytes) -> None:
    for size in (6, 63, len(contents) // 2, len(contents) - 64):
        with pytest.raises(ElfError, match=r"^is a damaged ELF library"):
            elf.read(contents[:size])


def test_library_without_sections_is_refused(contents: bytes) -> None:
    without = bytearray(contents)
    without[60:62] = bytes(2)
    with pytest.raises(ElfError, match=r"^has no section with its dynamic symbols$"):
        elf.read(bytes(without))


@pytest.mark.parametrize("number", [11, 0x6FFFFFFF], ids=["dynamic symbols", "versions"])
def test_table_with_very_many_entries_is_not_read(contents: bytes, number: int) -> None:
    header = _section_header(contents, number)
    enlarged = bytearray(contents)
    struct.pack_into("=Q", enlarged, header + 32, 1 << 60)
    with pytest.raises(ElfError, match=r"^has more than [0-9]+ entries in its tables$"):
        elf.read(bytes(enlarged))


def test_changed_bytes_give_a_library_or_the_error(contents: bytes) -> None:
    draw = random.Random(20)
    refused = 0
    tables = [_section_header(contents, number) for number in (6, 7, 11, 0x6FFFFFFF)]
    places = [*range(64), *(at + each for at in tables for each in range(64))]
    for _ in range(300):
        changed = bytearray(contents)
        for place in draw.sample(places, 2):
            changed[place] = draw.randrange(256)
        try:
            elf.read(bytes(changed))
        except ElfError:
            refused += 1
    assert 0 < refused < 300


def _section_header(contents: bytes, number: int) -> int:
    """Return where the header of the first section of a type is."""
    (start,) = struct.unpack_from("=Q", contents, 40)
    (count,) = struct.unpack_from("=H", contents, 60)
    return next(
        start + 64 * index
        for index in range(count)
        if struct.unpack_from("=I", contents, start + 64 * index + 4) == (number,)
    )
