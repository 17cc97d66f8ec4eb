"""Text that plugins choose, made safe to show."""

from __future__ import annotations

import pytest
from custom_pypto_discovery.printable import LONGEST, escape, escape_lines, shorten

BIDIRECTIONAL = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F]


@pytest.mark.parametrize("text", ["", "plain (ASCII) text", "l\xefne", "\u7b97\u5b50\u3000x\xa0y"])
def test_text_that_shows_itself_stays(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), *BIDIRECTIONAL, 0x2028, 0xDCFF])
def test_a_character_that_acts_on_a_terminal_is_escaped(code: int) -> None:
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


def test_a_text_that_is_not_long_stays() -> None:
    assert shorten("x" * LONGEST) == "x" * LONGEST
