"""A source of C++: its text without comments, with what its readers look up in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from custom_pypto_contract import cpp_text

from .model import Place

_CONSTANT = re.compile(
    r"\b(?:const|constexpr)\s+(?:auto|[\w:]+(?:<[\w:]+>)?)(?:\s*\*|\s)\s*(?P<name>\w+)"
    r"\s*(?:=|(?=\{))\s*"
)
_CALL = re.compile(r"\s*\.\s*(?P<name>\w+)\s*(?=\()")
# Each use of a constant copies its text.
_LONGEST_CONSTANT = 8192


class Call(NamedTuple):
    """A call in a chain, ``.Name(argument)``: where its name begins, and where it ends."""

    name: str
    argument: str
    start: int
    end: int


class Source:
    """The text of the file called `name`. Every reader goes through it once."""

    def __init__(self, text: str, name: str) -> None:
        self.text = cpp_text.blank_comments(text)
        self._name = name
        self._lines = cpp_text.Lines(self.text)
        self.ends = cpp_text.bracket_ends(self.text)

    def place(self, offset: int) -> Place:
        """Return the line of the character at `offset`."""
        return Place(self._name, self._lines.number_at(offset))

    def calls(self, at: int) -> Iterator[Call]:
        """Yield the calls of the chain at the offset `at`, up to one that is not closed."""
        while (match := _CALL.match(self.text, at)) is not None:
            begin = match.end()
            if not (end := self.ends[begin]):
                return
            yield Call(match["name"], self.text[begin + 1 : end - 1].strip(), match.start(1), end)
            at = end

    @cached_property
    def constants(self) -> dict[str, str]:
        """The C++ that initialises each constant."""
        found: dict[str, str] = {}
        limit = len(self.text)
        for match in reversed(list(_CONSTANT.finditer(self.text))):
            begin = match.end()
            end = self.text.find(";", begin, min(limit, begin + _LONGEST_CONSTANT))
            if end >= 0:
                found.setdefault(match["name"], self.text[begin:end].strip())
            limit = match.start()
        return found
