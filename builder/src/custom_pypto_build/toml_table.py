"""Tables of pyproject.toml, whose keys and types are checked."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """The document in the file `path`.

    Raises:
        BuildError: it does not exist, cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BuildError(f"{path} does not exist") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BuildError(f"pyproject.toml: {error}") from None


def subtable(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The table that these names lead to, one inside the other; empty where there is none.

    Raises:
        BuildError: what one of them names is no table.
    """
    table = document
    for name in names:
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise BuildError(f"pyproject.toml: {name} must be a table, got {inner!r}")
        table = inner
    return table


def suggestion(given: str, known: Iterable[str]) -> str:
    """What to add to a message about `given`: the one of `known` that is like it, if any."""
    close = difflib.get_close_matches(given, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


class Table:
    """A table of pyproject.toml. What reads it raises BuildError for a value of another type."""

    def __init__(self, values: object, name: str, allowed: Sequence[str] | None) -> None:
        """The table `name`, which has only the keys `allowed`; None: whatever its author names.

        Raises:
            BuildError: it is missing (None), no table, or has another key.
        """
        if values is None:
            raise BuildError(
                f"pyproject.toml: the table [{name}] is missing; it describes the plugin's library,"
                ' such as sources = ["csrc/**/*.cpp"], and is empty where all kernels are Python'
            )
        if not isinstance(values, dict):
            raise BuildError(f"pyproject.toml: {name} must be a table, got {values!r}")
        for key in values:
            if allowed is not None and key not in allowed:
                raise BuildError(
                    f"pyproject.toml: [{name}] has no key {key!r}; allowed: {', '.join(allowed)}"
                    + suggestion(key, allowed)
                )
        self._values: dict[str, Any] = values
        self._name = name

    def names(self) -> list[str]:
        """Its keys, in their order."""
        return list(self._values)

    def key(self, name: str) -> str:
        """The whole name of the key `name`, for messages."""
        return f"{self._name}.{name}"

    def has(self, name: str) -> bool:
        """Whether there is the key `name`."""
        return name in self._values

    def string(self, name: str) -> str:
        """A string, which must be there and not be empty."""
        value = self._values[name]
        if not isinstance(value, str) or not value:
            raise BuildError(
                f"pyproject.toml: {self.key(name)} must be a non-empty string, got {value!r}"
            )
        return value

    def strings(self, name: str) -> list[str]:
        """A list of non-empty strings; empty where there is no such key."""
        value = self._values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise BuildError(
                f"pyproject.toml: {self.key(name)} must be a list of non-empty strings,"
                f" got {value!r}"
            )
        return value

    def table(self, name: str, allowed: Sequence[str] | None = None) -> Table:
        """A table, empty where there is none; `allowed` as of the constructor."""
        return Table(self._values.get(name, {}), self.key(name), allowed)

    def tables(self, name: str, allowed: Sequence[str]) -> list[Table]:
        """An array of tables that have only the keys `allowed`."""
        value = self._values.get(name, [])
        if not isinstance(value, list):
            raise BuildError(
                f"pyproject.toml: {self.key(name)} must be an array of tables, written"
                f" [[{self.key(name)}]], got {value!r}"
            )
        return [Table(v, f"{self.key(name)}[{i}]", allowed) for i, v in enumerate(value)]
