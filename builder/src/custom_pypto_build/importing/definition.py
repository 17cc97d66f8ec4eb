"""An operator of CANN as its prototype (REG_OP) or its OpDef class defines it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from .model import Place, Subject


class Kind(Enum):
    """How often a tensor is given."""

    REQUIRED = "REQUIRED"
    OPTIONAL = "OPTIONAL"
    DYNAMIC = "DYNAMIC"


@dataclass
class Tensor:
    """An input or an output. `dtypes` are as CANN names them, without ``DT_``."""

    name: str
    place: Place
    kind: Kind = Kind.REQUIRED
    dtypes: list[str] | None = None
    is_column: bool = False
    """Whether the dtypes at one index belong together, over all tensors that have such lists."""


@dataclass
class Attribute:
    """An attribute; `default` is as the C++ has it, None if it must be given."""

    name: str
    place: Place
    type: str = ""
    default: str | None = None


@dataclass
class Definition:
    """One operator; `problems` are what its reader did not understand."""

    name: str
    place: Place
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    attributes: list[Attribute] = field(default_factory=list)
    same_shapes: Mapping[int, int] | None = None
    """Outputs, by number, that have the shape of an input; None if that is not known."""
    problems: list[tuple[Place, Subject, str]] = field(default_factory=list)

    @property
    def references(self) -> list[Tensor]:
        """The inputs that are outputs too: the operator writes them."""
        names = {each.name for each in self.outputs}
        return [each for each in self.inputs if each.name in names]

    @cached_property
    def results(self) -> list[Tensor]:
        """The outputs that are no inputs."""
        names = {each.name for each in self.inputs}
        return [each for each in self.outputs if each.name not in names]


_TYPES = {
    "Int": "int",
    "Float": "float",
    "Bool": "bool",
    "String": "str",
    "ListInt": "int[]",
    "ListFloat": "float[]",
    "ListBool": "bool[]",
}


def torch_type(type_: str) -> str | None:
    """Return the type in a schema of an attribute; None where no schema has one."""
    return _TYPES.get(type_)
