"""Validators of nested tables, for ops.toml, manifests and pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .errors import did_you_mean

Validator = Callable[[str, Any], None]
"""Checks a value. Takes its path, for the error, and the value; raises `TableError`."""

_NO_VALUE = object()
_MAX_SHOWN = 80
# C++ ends a text at NUL, and terminals act on other control characters.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TableError(ValueError):
    """The value at `path` is wrong; `problem` says what must be there."""

    def __init__(self, path: str, problem: str, value: Any = _NO_VALUE) -> None:
        """Say what is wrong; with a `value`, what was given."""
        self.path = path
        self.problem = problem
        if value is not _NO_VALUE:
            given = repr(value)
            self.problem += f", got {given if len(given) <= _MAX_SHOWN else f'{given[:77]}...'}"
        super().__init__(f"{self.path} {self.problem}".lstrip())


def anything(path: str, value: Any) -> None:
    """Accept any value."""


def text(path: str, value: Any) -> None:
    """Check for a text, which may have line breaks and tabs, but no other control characters."""
    if not isinstance(value, str):
        raise TableError(path, "must be a text in quotes", value)
    if _CONTROL.search(value):
        raise TableError(path, "must have no control characters", value)


def filled_text(path: str, value: Any) -> None:
    """Check for a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise TableError(path, "must be a non-empty string", value)


def text_matching(pattern: str, expected: str) -> Validator:
    """Return a validator of texts that match a regular expression as a whole."""
    compiled = re.compile(pattern)

    def validate(path: str, value: Any) -> None:
        filled_text(path, value)
        if compiled.fullmatch(value) is None:
            raise TableError(path, f"must be {expected}", value)

    return validate


def list_of(
    validate: Validator, expected: str = "a list [ .. ]", *, is_filled: bool = False
) -> Validator:
    """Return a validator of lists, each of whose elements is validated."""

    def validate_list(path: str, value: Any) -> None:
        if not isinstance(value, list) or (is_filled and not value):
            raise TableError(path, f"must be {expected}", value)
        for index, each in enumerate(value):
            validate(f"{path}[{index}]", each)

    return validate_list


def one_or_list_of(validate: Validator) -> Validator:
    """Return a validator of one value or a list of such."""
    several = list_of(validate)
    return lambda path, value: (several if isinstance(value, list) else validate)(path, value)


def instance_of(types: tuple[type, ...], expected: str) -> Validator:
    """Return a validator of values of exactly one of some types."""

    def validate(path: str, value: Any) -> None:
        if type(value) not in types:
            raise TableError(path, f"must be {expected}", value)

    return validate


def optional(validate: Validator) -> Validator:
    """Return a validator that also takes None."""
    return lambda path, value: (anything if value is None else validate)(path, value)


def table(path: str, value: Any) -> None:
    """Check for a table."""
    if not isinstance(value, dict):
        raise TableError(path, "must be a table", value)


def shallow(path: str, value: Any, most: int) -> None:
    """Check that there are at most `most` levels of tables and lists, for readers recurse."""
    level = [value]
    for _ in range(most):
        inner = (each.values() if type(each) is dict else each for each in level)
        level = [one for each in inner for one in each if type(one) in (dict, list)]
        if not level:
            return
    raise TableError(path, f"is nested too deeply: at most {most} levels are allowed")


def table_of(validate: Validator, *, of_identifiers: bool = False) -> Validator:
    """Return a validator of tables, each of whose values is validated."""

    def validate_table(path: str, value: Any) -> None:
        table(path, value)
        for key, each in value.items():
            if of_identifiers and not (key.isascii() and key.isidentifier()):
                raise TableError(path, f"has the key {key!r}: use letters, digits and '_'")
            validate(f"{path}.{key}", each)

    return validate_table


def record(
    known: Mapping[str, Validator], required: Iterable[str] = (), *, is_open: bool = False
) -> Validator:
    """Return a validator of tables with certain keys; `is_open`: other keys are ignored."""
    needed = frozenset(required)

    def validate_record(path: str, value: Any) -> None:
        table(path, value)
        for key in value:
            if key not in known and not is_open:
                allowed = f"; allowed: {', '.join(known)}"
                raise TableError(path, f"has no key {key!r}{did_you_mean(key, known) or allowed}")
        for key, check in known.items():
            where = f"{path}.{key}".lstrip(".")
            if key in value:
                check(where, value[key])
            elif key in needed:
                raise TableError(where, "is missing")

    return validate_record
