"""Writes ops.h, the C++ that is made of ops.toml: an op's arguments, sizes, checks and outputs.

Each op is a struct in the namespace ``ops``, beside the constants and the enumerations of choices.
`custom_pypto/op_contract.h` has what the structs share; docs/contract.md shows how a kernel uses
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from custom_pypto_contract import ops_file
from custom_pypto_contract.constants import Constants
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.ops_file import OpsFile

from .groups import check_group, group_struct
from .names import camel, constant_definition, enumerated, struct_name
from .op_struct import OpStruct

FILE_NAME = "ops.h"


def header_text(file: OpsFile) -> str:
    """Return the text of ops.h.

    Raises:
        ContractError: two things would have one name in C++.
    """
    enums = _merge_enums(file.ops)
    _check_names(file, enums)
    has_arrays = any(isinstance(each, list) for each in file.constants.values()) or any(
        op.groups and op.templates for op in file.ops
    )
    launches = any(op.npu.launch for op in file.ops)
    lines = [
        "// Generated from ops.toml; change that, not this.",
        "#pragma once",
        "",
        *(["#include <array>", ""] if has_arrays else []),
        "#include <custom_pypto/op_contract.h>",
        *(["#include <custom_pypto/npu/launch.h>"] if launches else []),
        "",
        'namespace ops __attribute__((visibility("hidden"))) {',
        "",
        "using custom_pypto::ScalarType;",
        "using custom_pypto::Tensor;",
        *_define(file.constants, enums),
    ]
    groups: dict[str, OpContract] = {}
    for op in file.ops:
        for name in op.groups:
            check_group(name, groups.setdefault(name, op), op)
    for name, op in groups.items():
        lines += ["", *group_struct(name, op)]
    for op in file.ops:
        lines += ["", *OpStruct(op).lines()]
    return "\n".join([*lines, "", "}  // namespace ops", ""])


def _merge_enums(ops: Iterable[OpContract]) -> dict[str, list[str]]:
    """Return the values of each enumeration in all ops, by the argument that selects."""
    enums: dict[str, list[str]] = {}
    for op in ops:
        for selector, values in enumerated(op).items():
            merged = enums.setdefault(selector, [])
            merged.extend(value for value in values if value not in merged)
    return enums


def _define(constants: Constants, enums: dict[str, list[str]]) -> Iterator[str]:
    if constants:
        yield ""
        yield from (constant_definition(name, value) for name, value in constants.items())
    if enums:
        yield ""
    for selector, values in enums.items():
        yield f"enum class {camel(selector)} {{ {', '.join(values)} }};"


def _check_names(file: OpsFile, enums: Iterable[str]) -> None:
    """Check that no two definitions have one name."""
    owners: dict[str, str] = {}
    named = [(name, f"[constants] {name}") for name in file.constants]
    named += [(camel(each), f"the choices of {each!r}") for each in enums]
    for op in file.ops:
        named.append((struct_name(op.name), f"[{op.name}]"))
        named += [(struct_name(name), f"[groups.{name}]") for name in op.groups]
    for name, owner in named:
        if owners.setdefault(name, owner) != owner:
            raise ContractError(
                f"{ops_file.FILE_NAME}: {owners[name]} and {owner} would both be"
                f" ops::{name}; call one of them otherwise"
            )
