"""The name of an op, and where it stands in a schema."""

from __future__ import annotations

import re

from .errors import ContractError

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
OP_NAME = re.compile(rf"{NAME}(?:\.{NAME})?")

_SCHEMA = re.compile(
    rf"(?P<name>{OP_NAME.pattern})\((?P<arguments>.*)\) *-> *(?P<returns>\S.*)", re.DOTALL
)


def parts_of_schema(text: str) -> tuple[str, str, str]:
    """Return the op's name, with its overload when it has one, the arguments and the returns.

    Raises:
        ContractError: `text` has not the form of a schema.
    """
    match = _SCHEMA.fullmatch(text)
    if match is None:
        hint = "; leave the namespace out" if "::" in text.partition("(")[0] else ""
        raise ContractError(
            f"schema {text!r} must have the form 'name(arguments) -> returns' or"
            f" 'name.overload(arguments) -> returns'{hint}"
        )
    return match["name"], match["arguments"], match["returns"]
