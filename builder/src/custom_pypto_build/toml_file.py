"""Reads TOML files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """Return the document in the file `path`.

    Raises:
        BuildError: it does not exist, cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BuildError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        raise BuildError(f"{path.name}: {error}") from None
    except RecursionError:
        raise BuildError(f"{path.name}: a value is nested too deeply") from None


def subtable(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the table that these names lead to, one inside the other; empty where there is none.

    Raises:
        BuildError: one of them names something else.
    """
    table = document
    for name in names:
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise BuildError(f"pyproject.toml: {name} must be a table, got {inner!r}")
        table = inner
    return table
