"""The named constants of ops.toml: ``[constants]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from . import notation
from .dtypes import DTYPES
from .errors import ContractError, any_of

Constant = bool | int | float | str | list[Any]
Constants = Mapping[str, Constant]

_KEYS = (
    *notation.OP,
    *notation.TENSOR,
    *notation.TEMPLATE,
    *notation.RULE,
    *notation.LIMITS_OF_KERNEL,
)
_PROSE = frozenset(key.name for key in _KEYS if key.is_prose)
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
    pattern = re.compile(rf"\b(?:{names})\b")

    def replace(value: str, write: Callable[[Constant], str]) -> str:
        return pattern.sub(lambda match: write(constants[match[0]]), value)

    def fill_in_text(key: str | None, value: str) -> str:
        if key == "message":
            return re.sub(rf"\{{({names})\}}", lambda match: _shown(constants[match[1]]), value)
        if key == "schema":
            default = re.compile(rf"=\s*({names})\b")
            return default.sub(lambda match: f"={_written(constants[match[1]])}", value)
        return replace(value, _written)

    def fill_in_value(key: str | None, value: Any) -> Any:
        if key in _PROSE:
            return value
        if isinstance(value, dict):
            return {
                name: fill_in_value(None if key in _NAMED else name, each)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [fill_in_value(key, each) for each in value]
        return fill_in_text(key, value) if isinstance(value, str) else value

    return {key: fill_in_value(key, value) for key, value in body.items()}


def check(constants: Constants) -> None:
    """Check the names and values of constants.

    Raises:
        ContractError: a name is a dtype's, or a list is empty or of several types.
    """
    for name, value in constants.items():
        if name in DTYPES or not name.isupper():
            raise ContractError(f"[constants]: {name!r}: write the name in upper case")
        if isinstance(value, list) and len({type(each) for each in value}) != 1:
            raise ContractError(f"[constants]: {name}: a list has values of one type, got {value}")


def _written(value: Constant) -> str:
    """Return a value as an expression."""
    return f"({', '.join(map(repr, value))},)" if isinstance(value, list) else repr(value)


def _shown(value: Constant) -> str:
    """Return a value as a message shows it."""
    return any_of(map(str, value)) if isinstance(value, list) else str(value)
