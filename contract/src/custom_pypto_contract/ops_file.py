"""Reads ops.toml, the contract of a plugin's ops, into the normalised data of its manifest.

docs/contract.md says what can stand in the file. op_table.py fills in groups, kinds and defaults;
contract_data.py checks what the result means.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import contract_data, keys
from .call import ATTRIBUTES
from .contract import Op
from .errors import ContractError, any_of, guess
from .op_table import OpTable
from .shape import Choice, choices

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAME = "ops.toml"


def read(path: Path) -> tuple[Op, ...]:
    """Return the contracts in the file `path`, in its order.

    Raises:
        ContractError: it is missing, no TOML, or says something that it cannot mean. The text names
            file, op and key.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ContractError(
            f"{path} is missing; it says what the plugin's ops are, at least"
            ' [my_op]  schema = "my_op(Tensor self) -> Tensor"'
        ) from None
    except (OSError, ValueError) as error:
        raise ContractError(f"{path.name}: {error}") from None
    return read_document(document, path.name)


def read_document(document: Mapping[str, Any], name: str = FILE_NAME) -> tuple[Op, ...]:
    """Return the contracts in a parsed file that is called `name`.

    Raises:
        ContractError: as `read` does.
    """
    kinds = document.get("kinds", {})
    groups = document.get("groups", {})
    keys.table(f"{name}: [kinds]", kinds)
    keys.table(f"{name}: [groups]", groups)
    ops = [key for key in document if key not in ("kinds", "groups")]
    if not ops:
        raise ContractError(f"{name}: there is no op in it; begin one with [my_op]")
    for kind, body in kinds.items():
        _check_place(f"{name}: [kinds.{kind}]", keys.KIND, body)
    for group, body in groups.items():
        _check_place(f"{name}: [groups.{group}]", keys.GROUP, body)
        if not (group.isascii() and group.isidentifier()):
            raise ContractError(f"{name}: [groups.{group}]: call it by letters, digits and '_'")
        if "order" not in body:
            raise ContractError(
                f"{name}: [groups.{group}]: order is missing; say in which order its tensors are"
                f' checked: order = "{" ".join(body.get("tensors", {}))}"'
            )
    found = []
    for op in ops:
        try:
            contract = contract_data.read_contract(OpTable(op, document[op], kinds, groups).data())
            _check_selectors(contract)
            _check_calls(contract)
            _check_definition(contract)
            found.append(contract)
        except ContractError as error:
            raise ContractError(f"{name}: [{op}]: {error}") from None
    for kind in sorted(set(kinds) - set(_kinds_named((*groups.values(), *map(document.get, ops))))):
        raise ContractError(f"{name}: [kinds.{kind}]: no tensor is of it")
    for group in groups:
        if not any(group in op.groups for op in found):
            raise ContractError(f"{name}: [groups.{group}]: no op includes it")
    return tuple(found)


def _kinds_named(bodies: Iterable[Any]) -> Iterator[str]:
    for body in bodies:
        for tensor in body.get("tensors", {}).values():
            yield tensor.get("kind", "").partition("(")[0]


def _check_place(where: str, check: keys.Check, body: Any) -> None:
    try:
        check("", body)
    except ContractError as error:
        raise ContractError(f"{where}: {str(error).removeprefix(': ')}") from None


def _check_selectors(op: Op) -> None:
    """Check that a shape is chosen by what has one of the values listed, and is checked before."""
    for index, tensor in enumerate(op.tensors):
        earlier = [each.name for each in op.tensors[:index]]
        for choice in choices(tensor.shape):
            if choice.ranked not in (None, tensor.name, *earlier):
                raise ContractError(
                    f"tensors.{tensor.name}.shape: it is chosen by {choice.selector}, and"
                    f" {choice.ranked!r} is checked later; say another 'order'"
                )
            if choice.ranked != tensor.name:
                _check_values(op, f"tensors.{tensor.name}.shape", choice)
    for output in op.outputs or ():
        for choice in choices(output.shape):
            where = f"outputs.{output.name}.shape"
            _check_values(op, where, choice)
            left_out = op.left_out(choice)
            if left_out:
                raise ContractError(
                    f"{where}: it says nothing for {choice.selector} {left_out[0]!r}"
                )


def _check_calls(op: Op) -> None:
    """Check that lines of calls say what can be passed on."""
    for call in op.npu.launch:
        if call.results or any(parameter for parameter, _ in call.values):
            raise ContractError(
                f"npu.launch: {call.text!r}: a kernel takes values by position, its outputs among"
                " them: aclnnName(self, out)"
            )
    for call in op.npu.graph:
        where = f"npu.graph: {call.text!r}"
        if not all(parameter for parameter, _ in call.values):
            raise ContractError(f"{where}: an operator takes values by name: Operator(x=self) -> y")
        if op.schema.returns and len(call.results) != len(op.schema.returns):
            raise ContractError(
                f"{where}: it has {len(call.results)} results, but the schema"
                f" {len(op.schema.returns)} returns"
            )
        for name in sorted(call.names - {each.name for each in op.arguments}):
            raise ContractError(f"{where}: {name!r} is no argument; outputs stand behind '->'")
        for name in sorted(call.names):
            type_ = op.argument(name).type
            if type_ not in ("Tensor", "Tensor?", *ATTRIBUTES):
                raise ContractError(
                    f"{where}: {name!r} is of type {type_}, and an operator takes tensors, and"
                    f" attributes of type {any_of(ATTRIBUTES)}; give a converter by the hook"
                    " custom_pypto_converters"
                )
        for parameter, value in call.values:
            if value.is_scalar or ast.dump(value.node) == "Constant(value=None)":
                raise ContractError(
                    f"{where}: {ast.unparse(value.node)!r} for {parameter!r} is no attribute; write"
                    " a number, or leave the parameter out"
                )
            if isinstance(value.node, ast.List) and any(
                not op.argument(name).is_tensor for name in value.names
            ):
                raise ContractError(
                    f"{where}: the list for {parameter!r} is of tensors, or of numbers"
                )


def _check_definition(op: Op) -> None:
    """Check the names of the definition, a Python expression that may bind some itself."""
    nodes = list(ast.walk(ast.parse(op.definition or "None")))
    arguments = [each.name for each in op.arguments]
    names = [each for each in nodes if isinstance(each, ast.Name)]
    bound = {each.id for each in names if isinstance(each.ctx, ast.Store)}
    bound |= {each.arg for each in nodes if isinstance(each, ast.arg)}
    known = {"torch", *arguments, *vars(builtins), *bound}
    for name in sorted({each.id for each in names} - known):
        raise ContractError(f"definition: {name!r} is no argument{guess(name, arguments)}")


def _check_values(op: Op, where: str, choice: Choice) -> None:
    """Check that something says which values a choice's selector can have."""
    selector = choice.selector
    if None not in op.values_of(selector):
        return
    if choice.ranked:
        raise ContractError(
            f"{where}: {selector} chooses, and {choice.ranked!r} can be None or of any rank; say"
            f" which it can have: tensors.{choice.ranked}.rank = {list(choice.of)}"
        )
    if op.argument(selector).is_optional:
        raise ContractError(f"{where}: {selector!r} chooses, and may be None")
    allowed = ", ".join(map(repr, choice.of))
    raise ContractError(
        f"scalars: {selector!r} chooses a variant; say which values it can have:"
        f' {selector} = "in ({allowed},)"'
    )
