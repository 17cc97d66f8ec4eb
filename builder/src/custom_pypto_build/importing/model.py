"""What every reader makes: an op as ops.toml will have it, and what a person must decide about it.

A reader drops nothing and guesses nothing. What it does not understand is a `Decision`, with the
line that it stands on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum


class ImportingError(Exception):
    """A file cannot be read as what it was said to be; the text names it and says what to do."""


class Subject(Enum):
    """What a person must decide about, for counting."""

    SCHEMA = "the schema"
    SHAPE = "the shape of an output"
    DTYPE = "a dtype"
    KERNEL = "the call of the kernel"
    GRAPH = "the operator in graphs"
    KEY = "a key without counterpart"
    NARROWER = "calls that the op refuses, and its source takes"

    @property
    def is_remark(self) -> bool:
        """Whether the op is complete all the same."""
        return self in (Subject.GRAPH, Subject.NARROWER)


@dataclass(frozen=True)
class Place:
    """A line of a source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Decision:
    """What the sources leave open, or the importer does not understand."""

    place: Place
    subject: Subject
    text: str


UNKNOWN = "?"
"""Stands for a shape or a dtype that is to be decided."""


@dataclass
class ImportedOp:
    """One op, in the words of ops.toml."""

    name: str
    place: Place
    schema: str
    tensors: dict[str, dict[str, str]] = field(default_factory=dict)
    """The keys ``shape`` and ``dtype`` of each tensor of the schema."""
    rules: list[dict[str, str]] = field(default_factory=list)
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    launch: str = ""
    graph: str = ""
    decisions: list[Decision] = field(default_factory=list)

    def decide(self, place: Place, subject: Subject, text: str) -> None:
        """Leave something to a person."""
        self.decisions.append(Decision(place, subject, text))

    @property
    def is_complete(self) -> bool:
        """Whether ops.toml can have it as it is."""
        return all(each.subject.is_remark for each in self.decisions)

    def give_shape(self, tensor: str) -> str:
        """Return the dim that stands for the whole shape of a tensor, such as ``*x_shape``."""
        shape = f"*{tensor}_shape"
        self.tensors[tensor].setdefault("shape", shape)
        return self.tensors[tensor]["shape"]


def count(ops: Iterable[ImportedOp]) -> Mapping[Subject, int]:
    """Return for each subject how many ops need a decision about it."""

    def subjects() -> Iterator[Subject]:
        for op in ops:
            yield from {each.subject for each in op.decisions}

    found = list(subjects())
    return {each: found.count(each) for each in Subject if each in found}
