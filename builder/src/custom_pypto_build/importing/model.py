"""What readers make: an operator of CANN, an op as ops.toml will have it, and what is undecided.

A reader drops nothing and guesses nothing. What it does not understand is a `Decision`, with the
line that it stands on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple


class ImportingError(Exception):
    """A file is not what its option says; the text names it and says what to do."""


class Subject(Enum):
    """What a person must decide about, for counting."""

    SCHEMA = "the schema"
    SHAPE = "the shape of an output"
    DTYPE = "a dtype"
    KERNEL = "the call of the kernel"
    GRAPH = "the operator in graphs"
    KEY = "a key without counterpart"
    NARROWER = "calls that the op refuses, and its source takes"


REMARKS = (Subject.GRAPH, Subject.NARROWER)
"""With decisions about these alone an op is complete."""


class Place(NamedTuple):
    """A line of a source."""

    file: str
    line: int
    is_generated: bool = False
    """Whether a build wrote the file."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Decision(NamedTuple):
    """What the sources leave open, or the importer does not understand."""

    place: Place
    subject: Subject
    text: str


UNKNOWN = "?"
"""Stands for a shape or a dtype that is to be decided."""


@dataclass
class Undecided:
    """Something with decisions."""

    decisions: list[Decision] = field(default_factory=list, kw_only=True)

    def decide(self, place: Place, subject: Subject, text: str) -> None:
        """Leave something to a person."""
        self.decisions.append(Decision(place, subject, text))


@dataclass
class ImportedOp(Undecided):
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

    @property
    def is_complete(self) -> bool:
        """Whether ops.toml can have it as it is."""
        return all(each.subject in REMARKS for each in self.decisions)

    def give_shape(self, tensor: str) -> str:
        """Return the dim that stands for the whole shape of a tensor, such as ``*x_shape``."""
        self.tensors[tensor].setdefault("shape", f"*{tensor}_shape")
        return self.tensors[tensor]["shape"]


class Kind(Enum):
    """How often a tensor is given."""

    REQUIRED = "REQUIRED"
    OPTIONAL = "OPTIONAL"
    DYNAMIC = "DYNAMIC"


@dataclass(eq=False)
class Tensor:
    """An input or an output. `dtypes` are as CANN names them, without ``DT_``."""

    name: str
    place: Place
    kind: Kind = Kind.REQUIRED
    dtypes: list[str] | None = None
    is_column: bool = False
    """Whether the dtypes at one index belong together, over all tensors that have such lists."""

    @property
    def schema_type(self) -> str:
        """The type of the argument of a launch."""
        return "Tensor[]" if self.kind is Kind.DYNAMIC else "Tensor"


@dataclass
class Attribute:
    """An attribute; `default` is as the C++ has it, None if it must be given."""

    name: str
    place: Place
    type: str = ""
    default: str | None = None

    @property
    def schema_type(self) -> str | None:
        """The type of the argument in a schema; None if a schema has no such type."""
        return SCHEMA_TYPES.get(self.type)


@dataclass
class Definition(Undecided):
    """One operator, as its prototype (REG_OP) or its OpDef class defines it."""

    name: str
    place: Place
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    constants: Mapping[str, str] = field(default_factory=dict)
    """The literals that its file gives a name."""
    same_shapes: Mapping[int, int] | None = None
    """Outputs, by number, that have the shape of an input; None if that is not known."""

    @cached_property
    def results(self) -> list[Tensor]:
        """The outputs that are no inputs."""
        names = {each.name for each in self.inputs}
        return [each for each in self.outputs if each.name not in names]


SCHEMA_TYPES = {
    "Int": "int",
    "Float": "float",
    "Bool": "bool",
    "String": "str",
    "ListInt": "int[]",
    "ListFloat": "float[]",
    "ListBool": "bool[]",
}
"""The type in a schema of an attribute."""
