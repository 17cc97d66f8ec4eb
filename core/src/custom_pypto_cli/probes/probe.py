"""One line of the report of ``custom-pypto doctor`` and ``custom-pypto check``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How much a probe matters."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; ops can be used all the same."""
    PROBLEM = "problem"


@dataclass(frozen=True)
class Probe:
    """One fact: its name, its value and, if that is wrong, the remedy."""

    name: str
    value: str
    level: Level = Level.OK
    remark: str = ""
    """The problem, or a remark; empty when all is well."""
    advice: str = ""
    """The remedy; present whenever there is a remark."""

    def with_note(self, remark: str, advice: str) -> Probe:
        """Return this probe with a remark which is no problem."""
        return Probe(self.name, self.value, Level.NOTE, remark, advice)

    def with_problem(self, problem: str, advice: str) -> Probe:
        """Return this probe as a problem."""
        return Probe(self.name, self.value, Level.PROBLEM, problem, advice)


def append_sentence(text: str, more: str) -> str:
    """Return ``text; more``, or `more` on a line of its own after a text of several lines."""
    return f"{text}\n{more}" if "\n" in text else f"{text}; {more}"
