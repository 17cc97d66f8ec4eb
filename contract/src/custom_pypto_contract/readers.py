"""Readers of the parts of a contract's normalised data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import expression
from .call import Call, parse_call
from .contract import Dtypes, Output, Rule
from .errors import ContractError, at
from .shape import Choice, Dim, Tree, parse_shape


def read_tree(read_leaf: Callable[[Any], Any]) -> Callable[[Any], Tree]:
    """Return a reader of leaves and ``{"by": selector, "of": [[value, tree], ...]}``."""

    def read(data: Any) -> Tree:
        if data is None:
            return None
        if isinstance(data, dict):
            return Choice(data["by"], {value: read(each) for value, each in data["of"]})
        return read_leaf(data)

    return read


read_shapes = read_tree(parse_shape)
read_texts = read_tree(str)
read_flags = read_tree(bool)
read_costs = read_tree(expression.parse_cost)


def read_rules(data: Iterable[Mapping[str, Any]]) -> tuple[Rule, ...]:
    """Return rules."""
    rules = []
    for index, each in enumerate(data):
        with at(f"[{index}] (of {each['argument']!r})"):
            when = each["when"]
            rules.append(
                Rule(
                    argument=each["argument"],
                    check=expression.parse(each["check"]),
                    when=None if when is None else expression.parse(when),
                    message=expression.parse_message(each["message"]),
                )
            )
    return tuple(rules)


def read_length(data: str | None) -> Dim | None:
    """Return the length of a list; None where nothing says it."""
    if data is None:
        return None
    shape = parse_shape(data)
    if len(shape) != 1 or shape[0].is_variadic or shape[0].is_of_element or shape[0].divisor != 1:
        raise ContractError(f"{data!r} is no number of tensors; write a name, a number, or 2*E")
    return shape[0]


def read_outputs(data: Iterable[Mapping[str, Any]] | None) -> tuple[Output, ...] | None:
    """Return outputs; None where a contract does not describe them."""
    if data is None:
        return None
    outputs = []
    for each in data:
        with at(each["name"]):
            shape, dtype = read_shapes(each["shape"]), Dtypes.parse(each["dtype"])
            length = read_length(each.get("length"))
            outputs.append(Output(each["name"], shape, dtype, each["like"], length))
    return tuple(outputs)


def read_definition(data: str) -> str:
    """Return the definition of an op."""
    expression.parse_python(data or "None", f"{data!r} is no Python expression")
    return data


def read_members(data: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the arguments in each group, or the tensors of each template."""
    return {name: tuple(each) for name, each in data.items()}


def read_limits(data: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, tuple[Rule, ...]]:
    """Return the limits of each kernel."""
    limits = {}
    for name, rules in data.items():
        with at(name or "of every kernel"):
            limits[name] = read_rules(rules)
    return limits


def read_conditions(data: Mapping[str, str]) -> dict[str, ast.expr]:
    """Return the condition of each kernel."""
    conditions = {}
    for name, text in data.items():
        with at(name):
            conditions[name] = expression.parse(text)
    return conditions


def read_calls(data: Iterable[str]) -> tuple[Call, ...]:
    """Return the calls of kernels or operators."""
    return tuple(map(parse_call, data))
