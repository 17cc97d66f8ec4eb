"""The keys of ops.toml, and of which type the value of each is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .errors import ContractError, guess

Check = Callable[[str, Any], None]
"""Takes the place of a value, for the error, and the value."""


def _wrong(where: str, expected: str, value: Any) -> ContractError:
    return ContractError(f"{where}: write {expected}, got {value!r}")


def text(where: str, value: Any) -> None:
    """Check for a text."""
    if not isinstance(value, str):
        raise _wrong(where, "a text in quotes", value)


def plain_text(where: str, value: Any) -> None:
    """Check for a text of a message that shows no values."""
    text(where, value)
    if "{" in value or "}" in value:
        raise ContractError(f"{where}: it is shown as it is, without braces, got {value!r}")


def texts(where: str, value: Any) -> None:
    """Check for a text or a list of texts."""
    for each in value if isinstance(value, list) else [value]:
        text(where, each)


def ranks(where: str, value: Any) -> None:
    """Check for a list of ranks."""
    if (
        not isinstance(value, list)
        or not value
        or any(type(rank) is not int or rank < 0 for rank in value)
    ):
        raise _wrong(where, "a list of ranks, such as [2, 3]", value)


def values(where: str, value: Any) -> None:
    """Check for a list of values that something can be chosen by."""
    if (
        not isinstance(value, list)
        or not value
        or any(type(each) not in (bool, int, str) for each in value)
    ):
        raise _wrong(where, "a list of values, such as ['BSND']", value)


def table(where: str, value: Any) -> None:
    """Check for a table."""
    if not isinstance(value, dict):
        raise _wrong(where, "a table { key = .. }", value)


def table_of(check: Check, *, of_identifiers: bool = False) -> Check:
    """Return a check for a table with values of one type."""

    def check_table(where: str, value: Any) -> None:
        table(where, value)
        for key, each in value.items():
            if of_identifiers and not (key.isascii() and key.isidentifier()):
                raise ContractError(f"{where}: {key!r} is no name of letters, digits and '_'")
            check(f"{where}.{key}", each)

    return check_table


def tree_of(check: Check) -> Check:
    """Return a check for a leaf, or tables that choose among leaves."""

    def check_tree(where: str, value: Any) -> None:
        if isinstance(value, dict):
            choice_of(check)(where, value)
        else:
            check(where, value)

    return check_tree


def choice_of(check: Check) -> Check:
    """Return a check for tables that choose among leaves."""

    def check_choice(where: str, value: Any) -> None:
        table(where, value)
        for selector, each in value.items():
            if isinstance(each, dict):
                table_of(tree_of(check))(f"{where}.{selector}", each)
            else:
                raise ContractError(f"{where}: write {selector} = {{ value = .. }}, got {each!r}")

    return check_choice


def shape(where: str, value: Any) -> None:
    """Check for a shape, shapes by the tensor's own rank, or a choice of shapes."""
    if isinstance(value, list) and value:
        texts(where, value)
    else:
        tree_of(text)(where, value)


def list_of(check: Check) -> Check:
    """Return a check for a list with elements of one type."""

    def check_list(where: str, value: Any) -> None:
        if not isinstance(value, list):
            raise _wrong(where, "a list [ .. ]", value)
        for each in value:
            check(where, each)

    return check_list


def record(known: Mapping[str, Check], needed: Iterable[str] = ()) -> Check:
    """Return a check for a table with certain keys."""

    def check_record(where: str, value: Any) -> None:
        table(where, value)
        prefix = f"{where}: " if where else ""
        for key, each in value.items():
            if key not in known:
                raise ContractError(f"{prefix}unknown key {key!r}{guess(key, known)}")
            known[key](f"{where}.{key}".lstrip("."), each)
        for key in needed:
            if key not in value:
                raise ContractError(f"{prefix}{key!r} is missing in {value}")

    return check_record


def _words(where: str, value: Any) -> None:
    check: Check = table_of(plain_text) if isinstance(value, dict) else plain_text
    check(where, value)


def _limits(where: str, value: Any) -> None:
    of_kernel = record({"because": plain_text, "rules": _RULES}, ["rules"])
    check = _RULES if isinstance(value, list) else table_of(of_kernel, of_identifiers=True)
    check(where, value)


_RULES = list_of(record(dict.fromkeys(("of", "that", "when", "says"), text), ["of", "that"]))
_TENSOR: dict[str, Check] = {
    "shape": shape,
    "rank": ranks,
    "dtype": text,
    "required": choice_of(plain_text),
    "only": table_of(values),
    "strides": text,
    "hint": plain_text,
    "words": _words,
    "values": tree_of(text),
}
_OUTPUT: dict[str, Check] = {"shape": tree_of(text), "dtype": text, "like": text}
_COMMON: dict[str, Check] = {
    "include": texts,
    "order": texts,
    "tensors": table_of(record({"kind": text, **_TENSOR})),
    "rules": _RULES,
    "words": table_of(plain_text),
}
_NPU: dict[str, Check] = {
    "limits": _limits,
    "fits": table_of(text, of_identifiers=True),
    "launch": texts,
    "graph": texts,
}

KIND = record({"parameters": text, "rules": _RULES, **_TENSOR}, ["shape"])
GROUP = record({**_COMMON, "npu": record({"limits": _limits})})
OP = record(
    {
        **_COMMON,
        "schema": text,
        "about": text,
        "definition": text,
        "scalars": table_of(text),
        "outputs": table_of(record(_OUTPUT), of_identifiers=True),
        "npu": record(_NPU),
    }
)
