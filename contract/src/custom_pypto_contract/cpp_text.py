"""The parts of C and C++ text, for readers of declarations: comments, brackets, commas.

Each function looks at a character a bounded number of times, however the text is broken.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator

# A backslash outside quotes takes the next character along, as it does inside: so each line is
# searched at most twice for the end of a quote that has none.
_STRING = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\'[^\'\\\n]*(?:\\.[^\'\\\n]*)*\'|\\.'
_IGNORED = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TOKEN = re.compile(rf"{_STRING}|[()\[\]{{}}]", re.DOTALL)
_PARTS = {each: re.compile(rf"{_STRING}|[()\[\]{{}}{each}]", re.DOTALL) for each in ",;"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def blank_comments(text: str) -> str:
    """Return `text` with spaces for its comments, so that every place keeps its offset and line."""
    return _IGNORED.sub(
        lambda each: re.sub(r"[^\n]", " ", each[0]) if each[0][0] == "/" else each[0], text
    )


class Lines:
    """The lines of a text, by offset."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def number_at(self, offset: int) -> int:
        """Return the number of the line, from 1, that has the character at `offset`."""
        return bisect_left(self._ends, offset) + 1


def bracket_ends(text: str) -> array[int]:
    """Return, by the offset of a bracket of a text without comments, the offset behind its partner.

    The offset is 0 for a bracket that nothing closes, and for every other character.
    """
    ends, opened = array("i", bytes(4 * len(text))), array("i")
    for match in _TOKEN.finditer(text):
        at = match.start()
        token = text[at]
        if token in _CLOSING:
            opened.append(at)
        elif token in ")]}" and opened:
            if _CLOSING[text[opened[-1]]] == token:
                ends[opened.pop()] = at + 1
            else:
                # No bracket that is open here can be closed any more.
                opened = array("i")
    return ends


def split(text: str, separator: str = ",") -> Iterator[str]:
    """Return the stripped parts between separators that are in no brackets and no quotes."""
    depth = start = 0
    for match in _PARTS[separator].finditer(text):
        token = match[0]
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif token == separator and depth == 0:
            yield text[start : match.start()].strip()
            start = match.end()
    if rest := text[start:].strip():
        yield rest
