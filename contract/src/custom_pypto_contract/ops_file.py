"""Reads ops.toml, which describes the ops of a plugin.

docs/contract.md says what can stand in the file. `op_table` fills in groups, templates and
defaults; `contract_data` checks what the result means.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import contract_data, notation, small_file, tables
from .contract import OpContract
from .contract_checks import check_file_form
from .errors import ContractError
from .op_table import Constants, OpTable, Template, check_constants, fill_in_constants
from .tables import TableError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "ops.toml"
_MOST_LEVELS = 30
_MOST_DOTS = 256


@dataclass(frozen=True)
class OpsFile:
    """The ops in the order of the file, and its named constants."""

    ops: tuple[OpContract, ...]
    constants: Constants


def read(path: Path) -> OpsFile:
    """Return what the file `path` says.

    Raises:
        ContractError: it is missing, no TOML, or says something impossible. The text names file, op
            and key.
    """
    try:
        document = read_toml(path)
    except FileNotFoundError:
        raise ContractError(
            f"{path} is missing; it describes the plugin's ops. The shortest has two lines:\n"
            '[my_op]\nschema = "my_op(Tensor self) -> Tensor"'
        ) from None
    return read_document(document, path.name)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the document in the file `path`.

    Raises:
        ContractError: it cannot be read, or is not TOML.
        FileNotFoundError: there is no such file.
    """
    try:
        return parse_toml(small_file.read(path), path.name)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ContractError(f"{path.name}: {error}") from None


def parse_toml(text: str, name: str = FILE_NAME) -> dict[str, Any]:
    """Return the document in `text`, of a file that is called `name`.

    Raises:
        ContractError: it is not TOML, or larger than a file is read.
    """
    try:
        if len(text.encode()) > small_file.MAX_SIZE:
            raise ValueError(f"has more than {small_file.MAX_SIZE} bytes")
        _check_dots(text)
        document = tomllib.loads(text)
        tables.shallow("a value", document, _MOST_LEVELS)
        return document
    except ValueError as error:
        raise ContractError(f"{name}: {error}") from None
    except RecursionError:
        raise ContractError(f"{name}: a value is nested too deeply") from None


def _check_dots(text: str) -> None:
    """Check that no key has very many parts: tomllib's time grows with the square of these."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS and not line.startswith("#"):
            raise ValueError(
                f"a key is nested too deeply: line {number} has more than {_MOST_DOTS} dots"
            )


def read_document(document: Mapping[str, Any], name: str = FILE_NAME) -> OpsFile:
    """Return what a parsed file that is called `name` says.

    Raises:
        ContractError: as `read` does.
    """
    ops = [key for key in document if key not in notation.DOCUMENT]
    if not ops:
        raise ContractError(
            f"{name}: there is no op in it; begin one with [my_op]. If `custom-pypto import` wrote"
            " the file, its ops are comments: decide the lines TO DECIDE, and remove the `# ` marks"
        )
    try:
        for key, validate in notation.DOCUMENT.items():
            validate(key, document.get(key, {}))
        return _read(document, ops)
    except TableError as error:
        raise ContractError(f"{name}: [{error.path}] {error.problem}") from None
    except ContractError as error:
        raise ContractError(f"{name}: {error}") from None


def _read(document: Mapping[str, Any], ops: Iterable[str]) -> OpsFile:
    named = document.get("constants", {})
    check_constants(named)
    templates = {
        name: Template(name, fill_in_constants(named, body))
        for name, body in document.get("templates", {}).items()
    }
    groups = {
        name: fill_in_constants(named, body) for name, body in document.get("groups", {}).items()
    }
    for name, body in groups.items():
        if "check_order" not in body:
            raise ContractError(
                f"[groups.{name}] needs the order in which its tensors are checked:"
                f' check_order = "{" ".join(body.get("tensors", {}))}"'
            )
    found = []
    for op in ops:
        try:
            body = document[op]
            if isinstance(body, dict):
                body = fill_in_constants(named, body)
            contract = contract_data.read_contract(OpTable(op, body, templates, groups).data())
            for argument in contract.arguments:
                if argument.name in named:
                    problem = f"{argument.name!r} is a constant, and no argument's name"
                    raise ContractError(f"schema: {problem}")
            check_file_form(contract)
        except (ContractError, OverflowError) as error:
            raise ContractError(f"[{op}]: {error}") from None
        found.append(contract)
    for name in groups:
        if not any(name in op.groups for op in found):
            raise ContractError(f"[groups.{name}]: no op includes it")
    for name in templates:
        if not any(name in op.templates for op in found):
            raise ContractError(f"[templates.{name}]: no tensor has it")
    return OpsFile(tuple(found), named)
