"""Checks that each name of ops.h is one thing, and a name that C++ takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from custom_pypto_contract import ops_file
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.ops_file import OpsFile

from .cpp_names import camel, enumerated, identifier, struct_name
from .op_struct import returned_values

_RESERVED = re.compile("__|_[A-Z]")


def check_names(file: OpsFile, macros: Collection[str]) -> None:
    """Check the names of a file; `macros` are those that the included headers define.

    Raises:
        ContractError: two things would have one name in C++, or one has a name that C++ reserves,
            or that is a macro.
    """
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
            yield f"{inside}Sizes::", identifier(selector), f"{where} the argument {selector!r}"
            for value in values:
                yield f"ops::{camel(selector)}::", value, f"the value {value!r} of {selector!r}"
        for dim in op.dims:
            yield f"{inside}Sizes::", identifier(dim), f"{where} the dim {dim!r}"
        for name in op.groups:
            struct, where = struct_name(name), f"[groups.{name}]"
            yield "ops::", struct, where
            yield f"ops::{struct}::", struct, where
            for template in op.templates:
                yield f"ops::{struct}::", f"{template}_tensors", f"[templates.{template}]"
