"""The parts of C and C++ text, for readers of declarations: comments, brackets, commas."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

_STRING = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
_IGNORED = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|[()\[\]{{}},]", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def blank_comments(text: str) -> str:
    """Return `text` with spaces for its comments, so that every place keeps its offset and line."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return re.sub(r"[^\n]", " ", found) if found[0] == "/" else found

    return _IGNORED.sub(blank, text)


class Lines:
    """The lines of a text, by offset."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def number_at(self, offset: int) -> int:
        """Return the number of the line, from 1, that has the character at `offset`."""
        return bisect_left(self._ends, offset) + 1


def find_end(text: str, start: int) -> int | None:
    """Return the offset behind the bracket that closes the one at `start`; None if none does.

    `text` has no comments.
    """
    expected: list[str] = []
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if token in _CLOSING:
            expected.append(_CLOSING[token])
        elif token in (")", "]", "}"):
            if expected.pop() != token:
                return None
            if not expected:
                return match.end()
    return None


def split(text: str, separator: str = ",") -> Iterator[str]:
    """Return the stripped parts between separators that are in no brackets and no quotes."""
    depth = start = 0
    for match in re.finditer(rf"{_STRING}|[()\[\]{{}}{separator}]", text):
        token = match[0]
        if token in _CLOSING:
            depth += 1
        elif token in (")", "]", "}"):
            depth -= 1
        elif token == separator and depth == 0:
            yield text[start : match.start()].strip()
            start = match.end()
    if text[start:].strip():
        yield text[start:].strip()
