"""The structs of the arguments and sizes that several ops share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.schema import Argument
from custom_pypto_contract.shape import choices

from .cpp_names import argument_type, camel, dim_type, enumerated, identifier, quoted, struct_name


def group_struct(name: str, op: OpContract) -> Iterator[str]:
    """Return a struct of the arguments that several ops share, and one of their sizes."""
    arguments, dims = [*map(op.argument, op.groups[name])], _group_dims(name, op)
    enums = _group_choices(name, op)
    yield f"// The arguments of every op that includes the group '{name}'."
    yield f"struct {struct_name(name)} {{"
    yield "  struct Arguments {"
    yield from (f"    {argument_type(each)} {identifier(each.name)};" for each in arguments)
    yield "  };"
    yield "  struct CallShape {"
    yield from (f"    ops::{camel(each)} {identifier(each)};" for each in enums)
    yield from (f"    {dim_type(op, dim)} {identifier(dim)};" for dim in dims)
    yield "  };"
    yield "  template <class OpArguments>"
    yield "  static Arguments arguments(const OpArguments& a) {"
    yield f"    return {{{', '.join(f'a.{identifier(each.name)}' for each in arguments)}}};"
    yield "  }"
    yield "  template <class OpCallShape>"
    yield "  static CallShape call_shape(const OpCallShape& s) {"
    yield f"    return {{{', '.join(f's.{identifier(each)}' for each in (*enums, *dims))}}};"
    yield "  }"
    for template, members in op.templates.items():
        yield from _tensors_of_template(template, [a for a in arguments if a.name in members])
    yield "};"


def _tensors_of_template(template: str, tensors: Sequence[Argument]) -> Iterator[str]:
    """Return a function for the tensors that a template describes; none for optional ones."""
    if not tensors or any(each.is_optional for each in tensors):
        return
    pairs = ", ".join(f"{{{quoted(each.name)}, a.{identifier(each.name)}}}" for each in tensors)
    yield f"  static std::array<std::pair<const char*, const Tensor&>, {len(tensors)}>"
    yield f"  {template}_tensors(const Arguments& a) {{"
    yield f"    return {{{{{pairs}}}}};"
    yield "  }"


def _group_dims(name: str, op: OpContract) -> list[str]:
    found = (
        dim.name
        for tensor in op.tensors
        if tensor.name in op.groups[name]
        for dim in tensor.all_dims
        if dim.name in op.dims
    )
    return list(dict.fromkeys(filter(None, found)))


def _group_choices(name: str, op: OpContract) -> list[str]:
    """Return the enumerated arguments that select among variants of a group's tensors."""
    selectors = {
        choice.selector
        for tensor in op.tensors
        if tensor.name in op.groups[name]
        for tree in (tensor.shape, tensor.required_when, tensor.allowed_when, tensor.values)
        for choice in choices(tree)
    }
    return [each for each in enumerated(op) if each in selectors]


def check_group(name: str, first: OpContract, op: OpContract) -> None:
    """Check that a group is one struct for two ops that include it."""

    def members(of: OpContract) -> dict[str, str]:
        types = {each.name: argument_type(each) for each in map(of.argument, of.groups[name])}
        enums = {f"the choice by {each}": camel(each) for each in _group_choices(name, of)}
        templates = {
            f"the template of {tensor}": template
            for template, tensors in of.templates.items()
            for tensor in tensors
            if tensor in types
        }
        dims = {f"the dim {dim}": dim_type(of, dim) for dim in _group_dims(name, of)}
        return {**types, **enums, **templates, **dims}

    one, other = members(first), members(op)
    for member in sorted({*one, *other}):
        if one.get(member) != other.get(member):
            raise ContractError(
                f"{ops_file.FILE_NAME}: [groups.{name}] cannot be one struct: {member!r} is"
                f" {one.get(member, 'missing')} in [{first.name}], {other.get(member, 'missing')}"
                f" in [{op.name}]; make two groups of it"
            )
