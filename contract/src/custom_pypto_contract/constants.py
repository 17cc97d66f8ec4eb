"""The named constants of ops.toml: ``[constants]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from . import notation
from .dtypes import DTYPES
from .errors import ContractError, any_of
from .expression import is_representable

Constant = bool | int | float | str | list[Any]
Constants = Mapping[str, Constant]

_KEYS = (
    *notation.OP,
    *notation.TENSOR,
    *notation.TEMPLATE,
    *notation.RULE,
    *notation.LIMITS_OF_KERNEL,
)
_TREES = frozenset(key.name for key in _KEYS if key.is_tree)
# Prose, names of other things, and the values of arguments.
_KEPT = frozenset(
    (
        *(key.name for key in _KEYS if key.is_prose),
        *("argument", "like", "include", "check_order", "parameters", "dtype", "allowed_when"),
    )
)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# The keys of these tables are an author's names.
_NAMED = frozenset(("tensors", "outputs", "scalars", "limits", "supports"))


def fill_in(constants: Constants, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of an op, a group or a template with constants replaced by their values.

    They are replaced in expressions, shapes and calls, in braces of messages, and in defaults of a
    schema; a list stands for the values behind ``in``.
    """
    if not constants:
        return dict(body)
    names = "|".join(map(re.escape, constants))
    # Neither a name in quotes, nor an attribute, nor a kernel's name, nor that of a parameter.
    value_pattern = re.compile(rf"{_QUOTED}|(?<!\w)(?<![\w)\]]\.)({names})\b(?!\(|\s*=(?!=))")
    default_pattern = re.compile(rf"{_QUOTED}|(?<==)\s*({names})\b")

    def replace(pattern: re.Pattern[str], value: str, *, is_schema: bool = False) -> str:
        def replace_match(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0]
            return _written(constants[match[1]], is_schema=is_schema)

        return pattern.sub(replace_match, value)

    def replace_shown(match: re.Match[str]) -> str:
        name = match[1].strip()
        if name in constants:
            return _shown(name, constants[name])
        return f"{{{replace(value_pattern, match[1])}}}"

    def fill_in_text(key: str | None, value: str) -> str:
        if key == "message":
            return re.sub(r"\{(.*?)\}", replace_shown, value)
        if key == "schema":
            return replace(default_pattern, value, is_schema=True)
        return replace(value_pattern, value)

    def fill_in_value(key: str | None, value: Any) -> Any:
        if key in _KEPT:
            return value
        if isinstance(value, dict):
            # The keys of a tree are arguments and their values.
            return {
                name: fill_in_value(key if key in _TREES else None if key in _NAMED else name, each)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [fill_in_value(key, each) for each in value]
        return fill_in_text(key, value) if isinstance(value, str) else value

    return {key: fill_in_value(key, value) for key, value in body.items()}


def check(constants: Constants) -> None:
    """Check the names and values of constants.

    Raises:
        ContractError: a name is a dtype's, a list is empty or of several types, or C++ does not
            have a number.
    """
    for name, value in constants.items():
        if name in DTYPES or not name.isupper():
            raise ContractError(f"[constants]: {name!r}: write the name in upper case")
        if isinstance(value, list) and len({type(each) for each in value}) != 1:
            raise ContractError(f"[constants]: {name}: a list has values of one type, got {value}")
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, (int, float)) and not is_representable(each):
                raise ContractError(f"[constants]: {name}: {each} does not fit into 64 bits")


def _written(value: Constant, *, is_schema: bool = False) -> str:
    """Return a value as an expression, or as a default of a schema."""
    if not isinstance(value, list):
        return repr(value)
    values = ", ".join(map(repr, value))
    return f"[{values}]" if is_schema else f"({values},)"


def _shown(name: str, value: Constant) -> str:
    """Return a value as a message shows it."""
    shown = any_of(map(str, value)) if isinstance(value, list) else str(value)
    if "{" in shown or "}" in shown:
        raise ContractError(f"message: {name} has braces, which no message can show: {shown!r}")
    return shown
