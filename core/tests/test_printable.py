"""Text that plugins choose, made safe to show."""

import ctypes
from collections.abc import Callable
from random import Random

import pytest
from cpp_library import SOURCES, compile_command, run
from custom_pypto_discovery.printable import LONGEST, escape, escape_lines, printable, shorten

BIDIRECTIONAL = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F]


def test_only_characters_that_act_on_a_terminal_are_escaped() -> None:
    for text in ("", "plain (ASCII) text", "l\xefne", "\u7b97\u5b50\u3000x\xa0y"):
        assert escape(text) == text
    for code in (*range(0x20), *range(0x7F, 0xA0), *BIDIRECTIONAL, 0x2028, 0xDCFF):
        shown = escape(f"a{chr(code)}b")
        assert shown.isprintable()
        assert shown.startswith("a\\")
        assert shown.endswith("b")


def test_newlines_alone_stay_where_they_are_layout() -> None:
    assert escape_lines("one\ntwo\r\n") == "one\ntwo\\r\n"


def test_a_long_text_keeps_both_ends() -> None:
    short = shorten("begin" + "x" * 10_000_000 + "end")
    assert short.startswith("beginx")
    assert short.endswith("xend")
    assert f"[{10_000_008 - LONGEST} characters left out]" in short
    assert len(short) < LONGEST + 100
    assert shorten("x" * LONGEST) == "x" * LONGEST


@pytest.fixture(scope="module")
def printable_of_cpp(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], str]:
    library = tmp_path_factory.mktemp("printable") / "printable.so"
    run(compile_command("-shared", SOURCES / "printable.cpp", "-o", library))
    function = ctypes.CDLL(str(library)).printable
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    function.restype = ctypes.c_size_t
    buffer = ctypes.create_string_buffer(20 * LONGEST)

    def call(text: bytes) -> str:
        size = function(text, len(text), buffer, len(buffer))
        return buffer.raw[:size].decode()

    return call


def test_cpp_escapes_the_same_characters(printable_of_cpp: Callable[[bytes], str]) -> None:
    for first in range(0, 0x110000, LONGEST):
        text = "".join(map(chr, range(first, min(first + LONGEST, 0x110000))))
        text = text.encode("utf-8", "ignore").decode()
        assert printable_of_cpp(text.encode()) == escape(text)


def test_cpp_escapes_each_byte_that_is_no_utf8(printable_of_cpp: Callable[[bytes], str]) -> None:
    random = Random(0)
    # Whole characters, their first bytes, the bytes that follow; what the last two give is
    # often too short, longer than it must be, a surrogate or beyond Unicode.
    heads = [*range(0x40, 0x80), *range(0xC0, 0x100)]
    for _ in range(2000):
        groups = ([random.choice(heads), *random.choices(range(0x80, 0xC0), k=3)] for _ in "x" * 50)
        text = b"".join(bytes(group[: random.randint(1, 4)]) for group in groups)
        assert printable_of_cpp(text) == escape(text.decode("utf-8", "backslashreplace"))


def test_cpp_shortens_a_long_text_the_same(printable_of_cpp: Callable[[bytes], str]) -> None:
    for size in (LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST):
        text = "\u7b97\n" * (size // 2) + "x" * (size % 2)
        assert printable_of_cpp(text.encode()) == printable(text)
