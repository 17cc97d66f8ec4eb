"""A contract as plain data, which ops_file.py writes into a plugin's manifest.

It is normalised: groups and kinds are filled in, and nothing in it has a default, so that a later
version of this package reads it as it was meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from . import expression
from .call import Call, parse_call
from .contract import STRIDES, Dtypes, Npu, Op, Output, Rule, Tensor
from .errors import ContractError, at
from .expression import parse_message
from .name_checks import check_names
from .schema import Argument, parse_schema
from .shape import Choice, Tree, parse_shape


def read_contract(data: Mapping[str, Any]) -> Op:
    """Return the contract that the normalised `data` is.

    Raises:
        ContractError: it cannot be meant; the text names the key.
    """
    with at("schema"):
        schema = parse_schema(data["schema"])
    arguments = {argument.name: argument for argument in schema.arguments}
    op = Op(
        schema=schema,
        about=data["about"],
        definition=_definition(data["definition"]),
        tensors=tuple(_tensor(each, arguments) for each in data["tensors"]),
        rules=tuple(_rules(data["rules"], "rules")),
        outputs=_outputs(data["outputs"]) if schema.returns else (),
        words=data["words"],
        groups={name: tuple(each) for name, each in data["groups"].items()},
        npu=_npu(data["npu"]),
        data=data,
    )
    check_names(op)
    return op


def _definition(text: str) -> str:
    with at("definition"):
        try:
            ast.parse(text or "None", mode="eval")
        except SyntaxError as error:
            raise ContractError(f"{text!r} is no Python expression: {error.msg}") from None
    return text


def _tensor(data: Mapping[str, Any], arguments: Mapping[str, Argument]) -> Tensor:
    name = data["name"]
    with at(f"tensors.{name}"):
        with at("shape"):
            shape = _tree(data["shape"], parse_shape)
        with at("dtype"):
            dtype = Dtypes.parse(data["dtype"])
        if data["strides"] not in STRIDES:
            raise ContractError(f"strides must be one of {', '.join(STRIDES)}")
        only = data["only"]
        return Tensor(
            name=name,
            is_optional=arguments[name].is_optional,
            shape=shape,
            ranks=tuple(data["rank"]),
            dtype=dtype,
            required=_tree(data["required"], str),
            only=None if only is None else _tree(only, bool),
            strides=data["strides"],
            hint=data["hint"],
            words=data["words"],
            values=_tree(data["values"], str),
        )


def _tree(data: Any, leaf: Any) -> Tree:
    """Return the tree of ``{"by": selector, "of": [[value, tree], ...]}`` and leaves."""
    if data is None:
        return None
    if isinstance(data, dict):
        return Choice(data["by"], {value: _tree(each, leaf) for value, each in data["of"]})
    return leaf(data)


def _rules(data: list[Mapping[str, Any]], where: str) -> Iterator[Rule]:
    for index, each in enumerate(data):
        with at(f"{where}[{index}] (of {each['of']!r})"):
            when = each["when"]
            yield Rule(
                of=each["of"],
                that=expression.parse(each["that"]),
                when=None if when is None else expression.parse(when),
                says=parse_message(each["says"]),
            )


def _outputs(data: list[Mapping[str, Any]] | None) -> tuple[Output, ...] | None:
    if data is None:
        return None
    outputs = []
    for each in data:
        with at(f"outputs.{each['name']}"):
            shape = _tree(each["shape"], parse_shape)
            outputs.append(Output(each["name"], shape, Dtypes.parse(each["dtype"]), each["like"]))
    return tuple(outputs)


def _npu(data: Mapping[str, Any]) -> Npu:
    with at("npu"):
        fits = {}
        for name, text in data["fits"].items():
            with at(f"fits.{name}"):
                fits[name] = expression.parse(text)
        launch: list[Call] = []
        graph: list[Call] = []
        for key, calls in (("launch", launch), ("graph", graph)):
            with at(key):
                calls.extend(map(parse_call, data[key]))
        return Npu(
            limits={
                name: tuple(_rules(rules, f"limits.{name}".removesuffix(".")))
                for name, rules in data["limits"].items()
            },
            fits=fits,
            launch=tuple(launch),
            graph=tuple(graph),
        )
