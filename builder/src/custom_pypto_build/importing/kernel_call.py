"""Matches the parameters of an aclnn header with an operator, by name and type."""

from __future__ import annotations

import ast
from collections.abc import Container, Mapping, Sequence

from custom_pypto_contract.aclnn_header import Declaration, Parameter
from custom_pypto_contract.aclnn_launch import find_name, plain, takes
from custom_pypto_contract.schema import Schema

from .model import Definition, Kind, Tensor, torch_type

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


def kernel_name(operator: str) -> str:
    """Return the name of an operator's kernel."""
    return f"aclnn{operator}"


def generated_order(definition: Definition) -> list[str]:
    """Return the arguments of the kernel's C functions where the build generates them."""
    return [
        *(each.name for each in definition.inputs),
        *(each.name for each in definition.attributes),
        *(each.name for each in definition.results),
    ]


def match(definition: Definition, declaration: Declaration) -> tuple[list[str], list[str]]:
    """Return the arguments in the order of a header, and what does not fit, as texts."""
    expected = _types(definition)
    by_name = {plain(name): name for name in expected}
    results = [each.name for each in definition.results]
    order: list[str] = []
    problems: list[str] = []
    for number, parameter in enumerate(declaration.arguments or (), start=1):
        shown = f"parameter {number}, `{parameter.type} {parameter.name}`,".replace("* ", "*")
        name = find_name(parameter.name, by_name)
        if name is None and parameter.name == "out" and len(results) == 1:
            [name] = results
        if name is None:
            problems.append(f"{shown} is nothing that the operator has")
        elif name in order:
            problems.append(f"{shown} is {name}, as another parameter is")
        elif schema_type(parameter) != expected[name]:
            problems.append(f"{shown} is {name}, for which a launch passes another type")
        order.append(name or "?")
    missing = [name for name in expected if name not in order]
    if missing:
        problems.append(f"the header has no parameter for {', '.join(missing)}")
    return order, problems


def compare(
    schema: Schema, outputs: Container[str], passed: Sequence[str], declaration: Declaration
) -> list[str]:
    """Return what of a call does not fit a header, as texts: its number of arguments, or a type.

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
            shown = f"parameter {number}, `{parameter.type} {parameter.name}`,".replace("* ", "*")
            problems.append(f"{shown} gets {name}, which is passed as another type")
    return problems


def schema_type(parameter: Parameter) -> str | None:
    """Return the type in a schema whose values a launch passes as a parameter's type."""
    return next((type_ for type_, passed in _PASSED_AS.items() if takes(parameter, passed)), None)


def _types(definition: Definition) -> Mapping[str, str | None]:
    tensors: list[Tensor] = [*definition.inputs, *definition.results]
    return {
        **{each.name: "Tensor[]" if each.kind is Kind.DYNAMIC else "Tensor" for each in tensors},
        **{each.name: torch_type(each.type) for each in definition.attributes},
    }
