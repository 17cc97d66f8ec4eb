"""A contract as plain data, which stands in a plugin's manifest.

The data is normalised: templates, groups, constants and defaults are filled in. So a later version
of this package reads it as it was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import expression, notation
from .call import parse_call
from .contract import Dtypes, Npu, OpContract, Output, Rule, Tensor
from .contract_checks import check_names
from .errors import ContractError, at
from .notation import Key
from .schema import Argument, parse_schema
from .shape import Choice, Dim, Tree, parse_shape


def read_contract(data: Mapping[str, Any]) -> OpContract:
    """Return the contract in the normalised `data`.

    Raises:
        ContractError: it has no meaning; the text names the key.
    """
    with at("schema"):
        schema = parse_schema(data["schema"])
    arguments = {argument.name: argument for argument in schema.arguments}
    keys = [key for key in notation.OP if key.name in data]
    parts = _read(keys, data, but=("schema", "tensors", "npu"))
    if not schema.returns:
        parts["outputs"] = ()
    with at("npu"):
        npu = Npu(**_read(notation.NPU, data["npu"]))
    op = OpContract(
        schema=schema,
        tensors=tuple(_tensor(each, arguments) for each in data["tensors"]),
        npu=npu,
        groups=_read_members(data["groups"]),
        templates=_read_members(data["templates"]),
        data=data,
        **parts,
    )
    check_names(op)
    return op


def _tensor(data: Mapping[str, Any], arguments: Mapping[str, Argument]) -> Tensor:
    name = data["name"]
    with at(f"tensors.{name}"):
        argument = arguments[name]
        # An older manifest may lack newer keys.
        data = {**{key.name: key.default for key in notation.TENSOR}, **data}
        return Tensor(
            name, argument.is_optional, argument.is_tensor_list, **_read(notation.TENSOR, data)
        )


def _read(keys: Iterable[Key], data: Mapping[str, Any], but: Iterable[str] = ()) -> dict[str, Any]:
    found = {}
    for key in keys:
        if key.name not in but:
            with at(key.name):
                found[key.name] = _READERS.get(key.name, str)(data[key.name])
    return found


def _read_tree(read_leaf: Callable[[Any], Any]) -> Callable[[Any], Tree]:
    """Return a reader of leaves and ``{"by": selector, "of": [[value, tree], ...]}``."""

    def read(data: Any) -> Tree:
        if data is None:
            return None
        if isinstance(data, dict):
            return Choice(data["by"], {value: read(each) for value, each in data["of"]})
        return read_leaf(data)

    return read


_read_texts = _read_tree(str)
_read_costs = _read_tree(expression.parse_cost)


def _read_rules(data: Iterable[Mapping[str, Any]]) -> tuple[Rule, ...]:
    rules = []
    for index, each in enumerate(data):
        with at(f"[{index}] (of {each['argument']!r})"):
            check, when = expression.parse(each["check"]), each["when"]
            when = None if when is None else expression.parse(when)
            message = expression.parse_message(each["message"])
            rules.append(Rule(each["argument"], check, when, message))
    return tuple(rules)


def _read_length(data: str | None) -> Dim | None:
    if data is None:
        return None
    shape = parse_shape(data)
    if len(shape) != 1 or shape[0].is_variadic or shape[0].is_of_element or shape[0].divisor != 1:
        raise ContractError(f"{data!r} is no number of tensors; write a name, a number, or 2*E")
    return shape[0]


def _read_outputs(data: Iterable[Mapping[str, Any]] | None) -> tuple[Output, ...] | None:
    if data is None:
        return None
    outputs = []
    for each in data:
        with at(each["name"]):
            # An older manifest may lack a length.
            read = _read(notation.OUTPUT, {"length": None, **each})
            outputs.append(Output(each["name"], **read))
    return tuple(outputs)


def _read_definition(data: str) -> str:
    expression.parse_python(data or "None", f"{data!r} is no Python expression")
    return data


def _read_members(data: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(each) for name, each in data.items()}


def _read_by_kernel(read: Callable[[Any], Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    def read_each(data: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for name, each in data.items():
            with at(name or "of every kernel"):
                found[name] = read(each)
        return found

    return read_each


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "shape": _read_tree(parse_shape),
    "length": _read_length,
    "ndim": tuple,
    "dtype": Dtypes.parse,
    "like": lambda name: name,
    "required_when": _read_texts,
    "allowed_when": _read_tree(bool),
    "descriptions": dict,
    "values": _read_texts,
    "limits": _read_by_kernel(_read_rules),
    "supports": _read_by_kernel(expression.parse),
    "launch": lambda lines: tuple(map(parse_call, lines)),
    "graph": lambda lines: tuple(map(parse_call, lines)),
    "rules": _read_rules,
    "definition": _read_definition,
    "random": bool,
    "outputs": _read_outputs,
    "flops": _read_costs,
    "bytes": _read_costs,
}
"""What reads the value of a key; the others are texts."""
