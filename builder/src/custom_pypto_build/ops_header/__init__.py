"""Writes ops.h, the C++ that is made of ops.toml: an op's arguments, sizes, checks and outputs.

Each op is a struct in the namespace ``ops``, beside the constants and the enumerations of choices.
`custom_pypto/op_contract.h` has what the structs share; docs/contract.md shows how a kernel uses
them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.op_table import Constants
from custom_pypto_contract.ops_file import OpsFile

from custom_pypto_build.errors import BuildError

from .cpp_names import camel, constant_definition, enumerated, identifier, struct_name
from .groups import check_group, group_struct
from .op_struct import OpStruct, returned_values

FILE_NAME = "ops.h"
INCLUDES = ("custom_pypto/op_contract.h", "custom_pypto/npu/launch.h")
"""The headers of core that ops.h includes: the second one if an op has launch lines."""
_RESERVED = re.compile("__|_[A-Z]")


def header_text(file: OpsFile, macros: Collection[str] = ()) -> str:
    """Return the text of ops.h; `macros` are those that `INCLUDES` and the flags define.

    Raises:
        ContractError: two things would have one name in C++, or one has a name that C++ has a
            meaning for.
    """
    _check_names(file, macros)
    enums = _merge_enums(file.ops)
    has_arrays = any(isinstance(each, list) for each in file.constants.values()) or any(
        op.groups and op.templates for op in file.ops
    )
    launches = any(op.npu.launch for op in file.ops)
    lines = [
        "// Generated from ops.toml; change that, not this.",
        "#pragma once",
        "",
        *(["#include <array>", ""] if has_arrays else []),
        *(f"#include <{each}>" for each in INCLUDES[: 1 + launches]),
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


def find_refusal(document: str) -> str | None:
    """Return what is wrong with the text of an ops.toml; None if nothing is."""
    try:
        header_text(ops_file.read_document(ops_file.parse_toml(document)))
    except (BuildError, ValueError) as error:
        return str(error).removeprefix(f"{ops_file.FILE_NAME}: ")
    except RecursionError:
        return "a value is nested too deeply"
    return None


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


def _check_names(file: OpsFile, macros: Collection[str]) -> None:
    """Check the names of a file; `macros` are those that the included headers define."""
    owners: dict[str, str] = {}
    for scope, name, owner in _definitions(file):
        full = f"{scope}{name}"
        other = owners.setdefault(full, owner)
        if other != owner:
            raise ContractError(
                f"{ops_file.FILE_NAME}: {other} and {owner} would both be {full}; call one of them"
                " otherwise"
            )
        problem = "which C++ reserves" if _RESERVED.match(name) else ""
        if name in macros:
            problem = f"and {name} is a macro of a header or a flag of the compiler"
        if problem:
            raise ContractError(
                f"{ops_file.FILE_NAME}: {owner} would be {full}, {problem}; call it otherwise"
            )


def _definitions(file: OpsFile) -> Iterator[tuple[str, str, str]]:
    """Return scope and name in C++ of everything that ops.h defines, and what it is in ops.toml."""
    for name in file.constants:
        yield "ops::", identifier(name), f"[constants] {name}"
    for op in file.ops:
        struct, where = struct_name(op.name), f"[{op.name}]"
        yield "ops::", struct, where
        inside = f"ops::{struct}::"
        # No function can have the name of its struct.
        yield inside, struct, where
        for each in op.npu.supports:
            yield inside, f"{each}_supports", f"{where} npu.supports.{each}"
        for each in op.npu.limits:
            if each:
                yield inside, f"check_limits_of_{each}", f"{where} npu.limits.{each}"
        for argument in op.arguments:
            owner = f"{where} the argument {argument.name!r}"
            yield f"{inside}Arguments::", identifier(argument.name), owner
        for index, (_, name) in enumerate(returned_values(op)):
            yield f"{inside}Outputs::", identifier(name), f"{where} result {index} ({name!r})"
        for selector, values in enumerated(op).items():
            yield "ops::", camel(selector), f"the choices of {selector!r}"
            yield f"{inside}CallShape::", identifier(selector), f"{where} the argument {selector!r}"
            for value in values:
                yield f"ops::{camel(selector)}::", value, f"the value {value!r} of {selector!r}"
        for dim in op.dims:
            yield f"{inside}CallShape::", identifier(dim), f"{where} the dim {dim!r}"
        for name in op.groups:
            struct, where = struct_name(name), f"[groups.{name}]"
            yield "ops::", struct, where
            yield f"ops::{struct}::", struct, where
            for template in op.templates:
                yield f"ops::{struct}::", f"{template}_tensors", f"[templates.{template}]"
