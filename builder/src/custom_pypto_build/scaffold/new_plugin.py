"""What a new plugin is: its names, and its op, which squares a tensor at first."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from custom_pypto_contract.call import GRAPH_ATTRIBUTES
from custom_pypto_contract.errors import ContractError, any_of
from custom_pypto_contract.schema import Schema, parse_schema

from custom_pypto_build.ops_header.cpp_names import struct_name

DTYPES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes of a new op's tensors; gradients that its author adds are checked in float64."""
NPU_DTYPES = DTYPES[:3]
"""The subset that NPU kernels support."""

_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LAUNCHED = ("Tensor", "Tensor?", "Tensor[]", "int", "float", "bool", "str", "int[]", "float[]")
_HIDDEN = {
    "torch": "the definition could not name the module torch beside",
    "mode": "torch.compile cannot pass by keyword",
    "out": "torch.compile takes for the memory of a result",
}
"""Why no argument has the name."""
_OFFICIAL = "custom_pypto_"
"""What the packages of this project begin with; neither their plugins nor their ops do."""


class ScaffoldError(Exception):
    """The plugin cannot be written as it was asked for; the text says what to change."""


@dataclass(frozen=True)
class NewPlugin:
    """A plugin with one op. Its kernel is a function in C++, or in Python for every device."""

    distribution: str
    schema: Schema
    is_python: bool
    has_npu: bool

    @property
    def package(self) -> str:
        """The Python package."""
        return package_of(self.distribution)

    @property
    def name(self) -> str:
        """The name of the plugin: that of its entry point."""
        return plugin_of(self.distribution)

    @property
    def op(self) -> str:
        """The op's name as a name of C++, of Python and of a file."""
        return struct_name(self.schema.name)

    @property
    def source(self) -> str:
        """The path of its kernel's source in the plugin's folder."""
        return f"src/{self.package}/__init__.py" if self.is_python else f"csrc/{self.op}.cpp"

    @property
    def kernel(self) -> str:
        """The op's name in the names of its kernels on NPUs: my_op is MyOp."""
        return "".join(part.capitalize() for part in re.split(r"[._]", self.schema.name))

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

    @cached_property
    def dims(self) -> str:
        """The dim that stands for the whole shape."""
        return f"*{free_name('shape', [each.name for each in self.schema.arguments])}"

    @cached_property
    def in_graphs(self) -> bool:
        """Whether an operator of the graph engine takes all the arguments."""
        types = {each.type for each in self.schema.arguments}
        return types <= {"Tensor", "Tensor?", *GRAPH_ATTRIBUTES}


def package_of(distribution: str) -> str:
    """Return the Python package of a distribution."""
    return distribution.replace("-", "_")


def plugin_of(distribution: str) -> str:
    """Return the name of the plugin of a distribution."""
    return package_of(distribution).removeprefix(_OFFICIAL)


def plan(name: str, schema: str | None, *, is_python: bool, has_npu: bool) -> NewPlugin:
    """Return the plugin called `name` whose op has the schema, or takes and returns a tensor.

    Raises:
        ScaffoldError: the name, the schema, or what is asked for together cannot be.
    """
    check_name(name)
    try:
        parsed = parse_schema((schema or f"{plugin_of(name)}(Tensor x) -> Tensor").strip())
    except ContractError as error:
        raise ScaffoldError(f"--{error}") from None
    made = NewPlugin(name.replace("_", "-"), parsed, is_python, has_npu)
    _check_schema(made)
    _check_npu(made)
    return made


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


def _check_schema(made: NewPlugin) -> None:
    if not made.first:
        raise ScaffoldError(
            "--schema: none of the arguments is a Tensor that is always given, and the results have"
            " the shape, dtype and device of one; docs/contract.md says how to write such an op"
        )
    fault = "" if made.schema.returns else "the op returns nothing"
    for each in made.schema.returns:
        if each.type != "Tensor":
            fault = f"it returns {each.type}, and outputs that ops.toml describes are Tensors"
    for argument in made.schema.arguments:
        if argument.is_mutable:
            fault = f"the op writes `{argument.name}`"
    if fault:
        raise ScaffoldError(f"--schema: {fault}; docs/contract.md says how to write such an op")
    for argument in made.schema.arguments:
        if argument.name in _HIDDEN:
            raise ScaffoldError(
                f"--schema: {_HIDDEN[argument.name]} an argument called {argument.name!r}; rename"
                " it"
            )
        if argument.type.startswith("Device"):
            raise ScaffoldError(
                f"--schema: `{argument.name}` is a Device, which torch.library.opcheck cannot"
                " inspect, so the conformance suite would fail; a result is on the device of its"
                " arguments"
            )


def _check_npu(made: NewPlugin) -> None:
    if made.has_npu and made.is_python:
        raise ScaffoldError(
            "--npu writes a launch from C++, and --python a kernel that runs on NPUs too, by"
            " torch_npu's ops; choose one"
        )
    for each in made.schema.arguments if made.has_npu else ():
        if each.type not in _LAUNCHED:
            raise ScaffoldError(
                f"--npu: no kernel of aclnn takes `{each.name}`, of type {each.type}; it takes"
                f" {any_of(_LAUNCHED)}. docs/npu.md says how to launch by hand"
            )
