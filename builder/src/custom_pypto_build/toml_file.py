"""Reads TOML files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from custom_pypto_contract import ops_file
from custom_pypto_contract.errors import ContractError

from .errors import BuildError


def read_toml(path: Path) -> dict[str, Any]:
    """Return the document in the file `path`.

    Raises:
        BuildError: it does not exist, cannot be read, or is not TOML.
    """
    try:
        return ops_file.read_toml(path)
    except FileNotFoundError:
        raise BuildError(f"{path} does not exist") from None
    except ContractError as error:
        raise BuildError(str(error)) from None


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
