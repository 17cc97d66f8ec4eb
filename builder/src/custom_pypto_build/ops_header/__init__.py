"""Writes ops.h, the C++ that comes of ops.toml: an op's arguments, sizes, checks and outputs.

Each op is a struct in the namespace ``ops``; `custom_pypto/op_contract.h` has what they share, and
docs/contract.md shows how a kernel uses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import Op
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.schema import Argument

from .names import argument_type, dim_type, identifier, struct_name
from .op_struct import OpStruct

FILE_NAME = "ops.h"


def text(ops: Iterable[Op]) -> str:
    """Return the text of ops.h."""
    found = tuple(ops)
    _check_names(found)
    launches = any(op.npu.launch for op in found)
    lines = [
        "// Generated from ops.toml; change that, not this.",
        "#pragma once",
        "",
        "#include <custom_pypto/op_contract.h>",
        *(["#include <custom_pypto/npu/launch.h>"] if launches else []),
        "",
        'namespace ops __attribute__((visibility("hidden"))) {',
        "",
        "using custom_pypto::ScalarType;",
        "using custom_pypto::Tensor;",
    ]
    groups: dict[str, Op] = {}
    for op in found:
        for name in op.groups:
            _check_group(name, groups.setdefault(name, op), op)
    for name, op in groups.items():
        lines += ["", *_group(name, op)]
    for op in found:
        lines += ["", *OpStruct(op).lines()]
    return "\n".join([*lines, "", "}  // namespace ops", ""])


def _check_names(ops: Iterable[Op]) -> None:
    """Check that no two structs have one name."""
    owners: dict[str, str] = {}
    for op in ops:
        for owner in (f"[{op.name}]", *(f"[groups.{name}]" for name in op.groups)):
            name = struct_name(owner[1:-1].removeprefix("groups."))
            if owners.setdefault(name, owner) != owner:
                raise ContractError(
                    f"{ops_file.FILE_NAME}: {owners[name]} and {owner} would both be the struct"
                    f" ops::{name}; call one of them otherwise"
                )


def _group(name: str, op: Op) -> Iterator[str]:
    """Return a struct of the arguments that several ops share, and one of their sizes."""
    arguments, dims = _group_arguments(name, op), _group_dims(name, op)
    yield f"// What the ops that include the group '{name}' have in common."
    yield f"struct {struct_name(name)} {{"
    yield "  struct Arguments {"
    yield from (f"    {argument_type(each)} {identifier(each.name)};" for each in arguments)
    yield "  };"
    yield "  struct Sizes {"
    yield from (f"    {dim_type(is_span)} {identifier(dim)};" for dim, is_span in dims.items())
    yield "  };"
    yield "  template <class OpArguments>"
    yield "  static Arguments arguments(const OpArguments& a) {"
    yield f"    return {{{', '.join(f'a.{identifier(each.name)}' for each in arguments)}}};"
    yield "  }"
    yield "  template <class OpSizes>"
    yield "  static Sizes sizes(const OpSizes& s) {"
    yield f"    return {{{', '.join(f's.{identifier(dim)}' for dim in dims)}}};"
    yield "  }"
    yield "};"


def _group_arguments(name: str, op: Op) -> list[Argument]:
    return [op.argument(each) for each in op.groups[name]]


def _group_dims(name: str, op: Op) -> dict[str, bool]:
    """Return the dims of a group's tensors, and whether each is variadic."""
    return {
        dim.name: op.dims[dim.name]
        for tensor in op.tensors
        if tensor.name in op.groups[name]
        for shape in tensor.shapes
        for dim in shape
        if dim.name in op.dims
    }


def _check_group(name: str, first: Op, op: Op) -> None:
    """Check that a group is one struct for two ops that include it."""

    def members(of: Op) -> dict[str, str]:
        types = {each.name: argument_type(each) for each in _group_arguments(name, of)}
        sizes = {dim: dim_type(is_span) for dim, is_span in _group_dims(name, of).items()}
        return {**types, **{f"the dim {dim}": type_ for dim, type_ in sizes.items()}}

    one, other = members(first), members(op)
    for member in sorted({*one, *other}):
        if one.get(member) != other.get(member):
            raise ContractError(
                f"{ops_file.FILE_NAME}: [groups.{name}] cannot be one struct: {member!r} is"
                f" {one.get(member, 'missing')} in [{first.name}], {other.get(member, 'missing')}"
                f" in [{op.name}]; make two groups of it"
            )
