"""Checks that every name in a contract is known where it is used, and has the type it must have."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set

from . import nodes, types
from .contract import Dtypes, OpContract, Output, Rule
from .dtypes import DTYPES
from .errors import ContractError, at, check_known
from .expression_names import INFINITY, find_given, find_unguarded, names_in
from .shape import Dim, Shape, Tree, choices, leaves


def check_names(op: OpContract) -> None:
    """Check that every name is an argument, a dtype, or a dim that is bound by then.

    Raises:
        ContractError: one is not; the text names the key.
    """
    known: dict[str, str] = dict.fromkeys(DTYPES, "dtype")
    for argument in op.arguments:
        if argument.name in (*known, INFINITY):
            what = "infinity" if argument.name == INFINITY else "a dtype"
            raise ContractError(f"schema: {argument.name!r} is {what}, and no argument's name")
        known[argument.name] = types.expression_type(argument.type)
    for selector in op.selectors:
        _check_selector(op, selector)
    for tensor in op.tensors:
        with at(f"tensors.{tensor.name}"):
            _check_dtype(op, tensor.dtype)
            bound: dict[str, str] = {}
            if tensor.length is not None:
                with at("length"):
                    known |= _check_shape(op, (tensor.length,), known)
            for shape in tensor.shapes:
                with at("shape"):
                    bound |= _check_shape(op, shape, known, tensor.length)
            known |= bound
    if op.dims_of_elements:
        if nodes.INDEX in known:
            raise ContractError(
                f"{nodes.INDEX!r} is the index of a list's tensors here; call the argument or dim"
                " otherwise"
            )
        known[nodes.INDEX] = "int"
    for key, rules in (("rules", op.rules), *op.npu.limits.items()):
        for rule in rules:
            _check_rule(key, rule, op, known)
    for name, condition in op.npu.supports.items():
        _check_type(f"npu.supports.{name}", condition, known, "bool")
        _check_guards(f"npu.supports.{name}", op, condition, op.may_be_none)
    if op.outputs is not None:
        _check_outputs(op, op.outputs, known)
    outputs = {output.name for output in op.outputs or ()}
    known_to_costs = {**dict.fromkeys(outputs, "tensor"), **known}
    _check_cost("flops", op, op.flops, known_to_costs)
    _check_cost("bytes", op, op.bytes, known_to_costs)
    for call in (*op.npu.launch, *op.npu.graph):
        _check_names_known(
            f"npu: {call.text!r}", call.names, outputs | {each.name for each in op.arguments}
        )


def _check_shape(
    op: OpContract, shape: Shape, known: types.Types, length: Dim | None = None
) -> dict[str, str]:
    """Check the dims of a tensor, or of each in a list; return those that it may bind."""
    inside: dict[str, str] = {}
    index = {} if length is None else {nodes.INDEX: "int"}
    for dim in shape:
        if dim.is_of_element:
            _check_dim_of_element(op, dim, length)
        if dim.name is not None and dim.name not in known:
            type_ = "sizes" if dim.is_variadic else "int"
            inside[dim.name] = type_ + types.ELEMENT * dim.is_of_element
        names = {**known, **index, **inside}
        for name in sorted(names_in(dim.expression)):
            check_known(
                name,
                names,
                f"{dim.text!r} uses {name!r}, which no tensor before it has (they are checked in"
                " the order of the schema, unless 'check_order' says another)",
            )
        _check_dim(op, dim, names)
    return inside


def _check_dim_of_element(op: OpContract, dim: Dim, length: Dim | None) -> None:
    expected = op.dims_of_elements.get(dim.name or "")
    if length is None or expected is None:
        raise ContractError(
            f"{dim.text!r} is a size of each tensor of a list, whose length has a name: write"
            ' length = "E" beside the shape of a Tensor[]'
        )
    if length.text != expected.text:
        raise ContractError(
            f"{dim.text!r} is of lists with the length {expected.text!r}, and this one has"
            f" {length.text!r}"
        )


def _check_dim(op: OpContract, dim: Dim, known: types.Types) -> None:
    found = types.type_of(dim.expression, known)
    if found != ("sizes" if dim.is_variadic else "int"):
        raise ContractError(f"{dim.text!r} is of type {found}, and no size")
    for name in sorted(names_in(dim.expression)):
        if any(each.name == name and each.is_optional for each in op.arguments):
            raise ContractError(f"{dim.text!r} uses {name!r}, which may be None")


def _check_dtype(op: OpContract, dtype: Dtypes) -> None:
    if dtype.same_as is not None:
        _check_is_given(op, "dtype", dtype.same_as)


def _check_is_given(op: OpContract, key: str, name: str) -> None:
    """Check that `name` is a tensor, or a list of them, that is never None."""
    lists = {each.name for each in op.tensors}
    tensors = {each.name: each for each in op.arguments if each.is_tensor or each.name in lists}
    check_known(name, tensors, f"{key}: there is no tensor {name!r}")
    if tensors[name].is_optional:
        raise ContractError(f"{key}: {name!r} may be None; name a tensor that every call gives")


def _check_outputs(op: OpContract, outputs: tuple[Output, ...], known: types.Types) -> None:
    for output, returned in zip(outputs, op.schema.returns, strict=True):
        with at(f"outputs.{output.name}"):
            if returned.type not in ("Tensor", "Tensor[]"):
                raise ContractError(
                    f"the schema returns {returned.type} here, and outputs are of type Tensor or"
                    " Tensor[]: leave the table out; then the kernel returns what it makes"
                )
            is_list = returned.type == "Tensor[]"
            if output.like is not None:
                _check_is_given(op, "like", output.like)
                if op.argument(output.like).type != returned.type:
                    raise ContractError(f"like: {output.like!r} is no {returned.type}")
            elif is_list != (output.length is not None):
                raise ContractError(
                    "write the length of the list beside shape and dtype"
                    if is_list
                    else "the schema returns a Tensor here, which has no length"
                )
            elif op.tensor_with_device is None:
                raise ContractError(
                    "no argument is a Tensor that says its device: leave the table out; then the"
                    " kernel returns what it makes"
                )
            _check_dtype(op, output.dtype)
            dims = [(dim, output.length) for shape in leaves(output.shape) for dim in shape]
            # The length itself is outside of the list.
            dims += [(output.length, None)] if output.length else []
            for dim, length in dims:
                names = {each: known[each] for each in known if length or each != nodes.INDEX}
                if dim.is_of_element:
                    _check_dim_of_element(op, dim, length)
                _check_names_known("shape", names_in(dim.expression), names)
                _check_dim(op, dim, names)


def _check_cost(key: str, op: OpContract, tree: Tree, known: types.Types) -> None:
    with at(key):
        for choice in choices(tree):
            _check_selector(op, choice.selector)
    optional = {each.name for each in op.arguments if each.is_optional}
    for node in leaves(tree):
        _check_type(key, node, known, "int")
        for name in sorted(names_in(node) & optional):
            raise ContractError(f"{key}: {ast.unparse(node)!r} uses {name!r}, which may be None")


def _check_rule(key: str, rule: Rule, op: OpContract, known: types.Types) -> None:
    arguments = [each.name for each in op.arguments]
    check_known(rule.argument, arguments, f"{key}: there is no argument {rule.argument!r}")
    key = f"{key} (of {rule.argument!r})"
    _check_type(key, rule.check, known, "bool")
    if rule.when is not None:
        _check_type(f"{key}: when", rule.when, known, "bool")
    for part in rule.message:
        if isinstance(part, ast.expr):
            _check_type(f"{key}: message", part, known, "")
    may_be_none = op.may_be_none & rule.tested_for_none
    if rule.when is not None:
        _check_guards(f"{key}: when", op, rule.when, may_be_none)
        may_be_none -= find_given(rule.when, True)
    _check_guards(key, op, rule.check, may_be_none)
    may_be_none -= find_given(rule.check, False)
    for part in rule.message:
        # A name alone is printed, also if it is None.
        if isinstance(part, ast.expr) and not isinstance(part, ast.Name):
            _check_guards(f"{key}: message", op, part, may_be_none)


def _check_guards(key: str, op: OpContract, node: ast.expr, may_be_none: Set[str]) -> None:
    """Check that an expression uses nothing where it may be None."""
    comparable = {each.name for each in op.arguments}
    for name in sorted(find_unguarded(node, may_be_none, comparable)):
        raise ContractError(
            f"{key}: {ast.unparse(node)!r} uses {name!r} where it may be None; test that first:"
            f" '{name} is None or ..', '{name} is not None and ..'"
        )


def _check_type(key: str, node: ast.expr, known: types.Types, expected: str) -> None:
    """Check an expression whose type is `expected`, or any that can be printed."""
    _check_names_known(key, names_in(node), known)
    with at(key):
        found = types.type_of(node, known)
        if found != expected and (expected or found in ("tensor", "tensors", "list")):
            raise ContractError(
                f"{ast.unparse(node)!r} is of type {found}"
                + (f", where {expected} is needed" if expected else ", which no message shows")
            )


def _check_names_known(key: str, used: set[str], known: Iterable[str]) -> None:
    for name in sorted(used):
        problem = f"{key}: {name!r} is no argument, no dtype and no dim of a tensor"
        check_known(name, known, problem)


def _check_selector(op: OpContract, selector: str) -> None:
    name, _, attribute = selector.partition(".")
    known = [each.name for each in op.arguments if each.is_tensor == bool(attribute)]
    if attribute not in ("", "ndim"):
        known = []
    check_known(
        name,
        known,
        f"{selector!r} is nothing to choose by: name a string, bool or int argument, or"
        " '<tensor>.ndim'",
    )
