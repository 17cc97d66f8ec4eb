"""Matches the parameters of an aclnn header with an operator, by name and type."""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence

from custom_pypto_contract.aclnn_header import Declaration, Parameter
from custom_pypto_contract.aclnn_launch import find_name, plain, takes
from custom_pypto_contract.schema import Schema

from .model import Attribute, Definition, Tensor

_PASSED_AS = {
    "Tensor": "aclTensor *",
    "Tensor[]": "aclTensorList *",
    "int": "int64_t",
    "float": "double",
    "bool": "bool",
    "str": "char *",
    "int[]": "aclIntArray *",
    "float[]": "aclFloatArray *",
    "bool[]": "aclBoolArray *",
    "ScalarType": "aclDataType",
}
"""The C type that a launch passes a value of a schema's type as."""


def argument_types(definition: Definition) -> dict[str, str | None]:
    """Return the arguments of a kernel with their types in a schema.

    They are in the order of the C functions that the build generates.
    """
    arguments: list[Tensor | Attribute] = [*definition.inputs, *definition.attributes]
    return {each.name: each.schema_type for each in (*arguments, *definition.results)}


def match(definition: Definition, declaration: Declaration) -> tuple[list[str], list[str]]:
    """Return the arguments in the order of a header, and what does not fit, as texts."""
    expected = argument_types(definition)
    by_name = {plain(name): name for name in expected}
    order: list[str] = []
    problems: list[str] = []
    for number, parameter in enumerate(declaration.arguments or (), start=1):
        name = find_name(parameter.name, by_name)
        if name is None and parameter.name == "out" and len(definition.results) == 1:
            name = definition.results[0].name
        problem = ""
        if name is None:
            problem = "nothing that the operator has"
        elif name in order:
            problem = f"{name}, as another parameter is"
        elif schema_type(parameter) != expected[name]:
            problem = f"{name}, for which a launch passes another type"
        if problem:
            problems.append(f"parameter {number}, {parameter}, is {problem}")
        order.append(name or "?")
    missing = [name for name in expected if name not in order]
    if missing:
        problems.append(f"the header has no parameter for {', '.join(missing)}")
    return order, problems


def compare(
    schema: Schema, outputs: Container[str], passed: Sequence[str], declaration: Declaration
) -> list[str]:
    """Return how a call differs from a header, as texts: in its number of arguments, or in a type.

    `passed` are arguments, outputs and constants.
    """
    parameters = declaration.arguments or ()
    if len(parameters) != len(passed):
        return [f"the header has {len(parameters)} arguments, the call {len(passed)}"]
    types = {each.name: each.type.removesuffix("?") for each in schema.arguments}
    problems = []
    for number, (name, parameter) in enumerate(zip(passed, parameters, strict=True), start=1):
        type_ = types.get(name, "Tensor")
        if name not in types and name not in outputs:
            type_ = type(ast.literal_eval(name)).__name__
        if type_ != schema_type(parameter):
            text = f"parameter {number}, {parameter}, gets {name}, which is passed as another type"
            problems.append(text)
    return problems


def schema_type(parameter: Parameter) -> str | None:
    """Return the type in a schema whose values a launch passes as a parameter's type."""
    return next((type_ for type_, passed in _PASSED_AS.items() if takes(parameter, passed)), None)
