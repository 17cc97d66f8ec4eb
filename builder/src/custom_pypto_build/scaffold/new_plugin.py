"""What a new plugin is: its names, and its ops, each of which squares a tensor at first."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from custom_pypto_contract.errors import ContractError, any_of
from custom_pypto_contract.schema import Schema, parse_schema

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LAUNCHED = ("Tensor", "Tensor?", "Tensor[]", "int", "float", "bool", "str", "int[]", "float[]")
_HIDDEN = {
    "torch": "beside which the definition could not name the module torch",
    "out": "which torch.compile takes for the memory of a result",
}
"""Why no argument has the name."""
_OFFICIAL = "custom_pypto_"
"""What the packages of this project begin with; neither their plugins nor their ops do."""


class ScaffoldError(Exception):
    """The plugin cannot be written as it was asked for; the text says what to change."""


@dataclass(frozen=True)
class NewOp:
    """An op, which squares a tensor at first."""

    schema: Schema

    @cached_property
    def first(self) -> str:
        """The tensor that is squared, the first that is always given; or ''."""
        return next((each.name for each in self.schema.arguments if each.type == "Tensor"), "")

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The names of the returned tensors."""
        returns = self.schema.returns
        taken = [each.name for each in self.schema.arguments]
        names: list[str] = []
        for index, each in enumerate(returns):
            default = "result" if len(returns) == 1 else f"result{index}"
            names.append(free_name(each.name or default, [*taken, *names]))
        return tuple(names)


@dataclass(frozen=True)
class NewPlugin:
    """A plugin. Its kernels are functions in C++, or in Python for every device."""

    distribution: str
    ops: tuple[NewOp, ...]
    is_python: bool
    has_npu: bool
    has_isas: bool
    """Whether the C++ is compiled once for each instruction set."""

    @property
    def package(self) -> str:
        """The Python package."""
        return self.distribution.replace("-", "_")

    @property
    def name(self) -> str:
        """The name of the plugin: that of its entry point."""
        return plugin_of(self.distribution)

    @property
    def source(self) -> str:
        """The path, in the plugin's folder, of the source that computes."""
        if self.is_python:
            return f"src/{self.package}/__init__.py"
        return "csrc/cpu/kernels.cpp" if self.has_isas else f"csrc/{self.name}.cpp"


def plugin_of(distribution: str) -> str:
    """Return the name of the plugin of a distribution."""
    return distribution.replace("-", "_").removeprefix(_OFFICIAL)


def plan(name: str, schemas: Sequence[str], *, python: bool, npu: bool, isa: bool) -> NewPlugin:
    """Return the plugin called `name` whose ops have the schemas, or whose op takes a tensor.

    Raises:
        ScaffoldError: the name, a schema, or what is asked for together cannot be.
    """
    check_name(name)
    ops: dict[str, NewOp] = {}
    for text in schemas or [f"{plugin_of(name)}(Tensor x) -> Tensor"]:
        try:
            op = NewOp(parse_schema(text.strip()))
        except ContractError as error:
            reason = str(error).removeprefix("schema: ")
            raise ScaffoldError(f"--schema {text!r}: {reason}") from None
        _check_schema(op, has_npu=npu)
        if ops.setdefault(op.schema.name, op) is not op:
            raise ScaffoldError(f"--schema: two ops are called {op.schema.name!r}; rename one")
    if python and (npu or isa):
        raise ScaffoldError(
            f"--{'npu' if npu else 'isa'} is for kernels in C++, and --python writes kernels"
            " for every device by torch's ops; choose one"
        )
    return NewPlugin(name.replace("_", "-"), (*ops.values(),), python, npu, isa)


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, with underscores behind it if it is taken."""
    known = set(taken)
    while name in known:
        name += "_"
    return name


def check_name(name: str) -> None:
    """Check a name that folder, distribution and, with ``_`` for ``-``, package have.

    Raises:
        ScaffoldError: it cannot be; the text suggests one.
    """
    if _NAME.fullmatch(name) is None:
        similar = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-0123456789")
        hint = f"; did you mean {similar!r}?" if similar else ""
        raise ScaffoldError(
            f"NAME is that of a folder, a distribution and, with '_' for '-', a package: lower case"
            f" letters, digits, and '-' or '_' between them, a letter first; got {name!r}{hint}"
        )
    if keyword.iskeyword(name):
        raise ScaffoldError(
            f"NAME: {name!r} is a keyword of Python, and no package has such a name; put your own"
            f" name before it, such as acme-{name}"
        )


def _check_schema(op: NewOp, *, has_npu: bool) -> None:
    by_hand = "docs/contract.md says how to write such an op"
    fault = "" if op.schema.returns else f"returns nothing; {by_hand}"
    if not op.first:
        fault = (
            "takes no Tensor that every call gives, and the results have the shape, dtype and"
            f" device of one; {by_hand}"
        )
    for each in op.schema.returns:
        if each.type != "Tensor":
            fault = f"returns {each.type}, and `new` writes ops that return Tensors; {by_hand}"
    for argument in op.schema.arguments:
        if argument.is_mutable:
            fault = f"writes `{argument.name}`; {by_hand}"
        elif argument.name in _HIDDEN:
            fault = f"has an argument `{argument.name}`, {_HIDDEN[argument.name]}; rename it"
        elif argument.type.startswith("Device"):
            fault = (
                f"takes a Device, `{argument.name}`, which torch's opcheck cannot inspect; omit it"
            )
        elif has_npu and argument.type not in _LAUNCHED:
            fault = (
                f"takes `{argument.name}` of type {argument.type}, and with --npu"
                f" {any_of(_LAUNCHED)}; docs/npu.md says how to launch by hand"
            )
    if fault:
        raise ScaffoldError(f"--schema: {op.schema.name} {fault}")
