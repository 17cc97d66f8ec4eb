"""Checks that every name in a contract is known where it is used, and of the type it must be."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Set

from . import expression, types
from .contract import Dtypes, Op, Output, Rule
from .errors import ContractError, at, guess
from .expression import DTYPES
from .shape import Dim, Shape, leaves


def check_names(op: Op) -> None:
    """Check that every name is of an argument, of a dtype, or of a dim that is bound by then.

    Raises:
        ContractError: one is not; the text names the key.
    """
    known: dict[str, str] = dict.fromkeys(DTYPES, "dtype")
    for argument in op.arguments:
        if argument.name in known:
            raise ContractError(f"schema: {argument.name!r} is a dtype, and no argument's name")
        known[argument.name] = types.of_argument(argument.type)
    for selector in op.selectors:
        _check_selector(op, selector)
    for tensor in op.tensors:
        with at(f"tensors.{tensor.name}"):
            _check_dtype(op, tensor.dtype)
            bound: dict[str, str] = {}
            for shape in tensor.shapes:
                with at("shape"):
                    bound |= _check_shape(op, shape, known)
            known |= bound
    for key, rules in (("rules", op.rules), *op.npu.limits.items()):
        for rule in rules:
            _check_rule(key, rule, op, known)
    for name, fit in op.npu.fits.items():
        _check_type(f"npu.fits.{name}", fit, known, "bool")
        _check_guards(f"npu.fits.{name}", op, fit, op.may_be_none)
    if op.outputs is not None:
        _check_outputs(op, op.outputs, known)
    outputs = {output.name for output in op.outputs or ()}
    for call in (*op.npu.launch, *op.npu.graph):
        _check_known(
            f"npu: {call.text!r}", call.names, outputs | {each.name for each in op.arguments}
        )


def _check_shape(op: Op, shape: Shape, known: types.Types) -> dict[str, str]:
    """Check the dims of a tensor; return those that it may bind."""
    inside: dict[str, str] = {}
    for dim in shape:
        if dim.name is not None and dim.name not in known:
            inside[dim.name] = "sizes" if dim.is_variadic else "int"
        names = {**known, **inside}
        for name in sorted(expression.names(dim.expression) - set(names)):
            raise ContractError(
                f"{dim.text!r} uses {name!r}, which no tensor before it has (they are checked in"
                f" the order of the schema, unless 'order' says another){guess(name, names)}"
            )
        _check_dim(op, dim, names)
    return inside


def _check_dim(op: Op, dim: Dim, known: types.Types) -> None:
    found = types.type_of(dim.expression, known)
    if found != ("sizes" if dim.is_variadic else "int"):
        raise ContractError(f"{dim.text!r} is of type {found}, and no size")
    for name in sorted(expression.names(dim.expression)):
        if any(each.name == name and each.is_optional for each in op.arguments):
            raise ContractError(f"{dim.text!r} uses {name!r}, which may be None")


def _check_dtype(op: Op, dtype: Dtypes) -> None:
    if dtype.same_as is not None:
        _check_is_given(op, "dtype", dtype.same_as)


def _check_is_given(op: Op, key: str, name: str) -> None:
    """Check that `name` is a tensor that is never None."""
    tensors = {each.name: each for each in op.arguments if each.is_tensor}
    if name not in tensors:
        raise ContractError(f"{key}: there is no tensor {name!r}{guess(name, tensors)}")
    if tensors[name].is_optional:
        raise ContractError(f"{key}: {name!r} may be None")


def _check_outputs(op: Op, outputs: tuple[Output, ...], known: types.Types) -> None:
    for output, returned in zip(outputs, op.schema.returns, strict=True):
        with at(f"outputs.{output.name}"):
            if returned.type != "Tensor":
                raise ContractError(
                    f"the schema returns {returned.type} here; outputs are of type Tensor only:"
                    " leave them out, and return from the kernel what it makes"
                )
            if output.like is not None:
                _check_is_given(op, "like", output.like)
            elif not any(each.type == "Tensor" for each in op.arguments):
                raise ContractError(
                    "no argument is a Tensor that says its device: leave outputs out, and return"
                    " from the kernel what it makes"
                )
            _check_dtype(op, output.dtype)
            for shape in leaves(output.shape):
                for dim in shape:
                    _check_known("shape", expression.names(dim.expression), known)
                    _check_dim(op, dim, known)


def _check_rule(key: str, rule: Rule, op: Op, known: types.Types) -> None:
    arguments = [each.name for each in op.arguments]
    if rule.of not in arguments:
        raise ContractError(f"{key}: there is no argument {rule.of!r}{guess(rule.of, arguments)}")
    key = f"{key} (of {rule.of!r})"
    _check_type(key, rule.that, known, "bool")
    if rule.when is not None:
        _check_type(f"{key}: when", rule.when, known, "bool")
    for part in rule.says:
        if isinstance(part, ast.expr):
            _check_type(f"{key}: says", part, known, "")
    may_be_none = op.may_be_none & rule.asked
    if rule.when is not None:
        _check_guards(f"{key}: when", op, rule.when, may_be_none)
        may_be_none -= expression.given_if(rule.when, True)
    _check_guards(key, op, rule.that, may_be_none)
    may_be_none -= expression.given_if(rule.that, False)
    for part in rule.says:
        # What is None is printed so.
        if isinstance(part, ast.expr) and not isinstance(part, ast.Name):
            _check_guards(f"{key}: says", op, part, may_be_none)


def _check_guards(key: str, op: Op, node: ast.expr, may_be_none: Set[str]) -> None:
    """Check that an expression uses nothing where that may be None."""
    comparable = {each.name for each in op.arguments}
    for name in sorted(expression.unguarded(node, may_be_none, comparable)):
        raise ContractError(
            f"{key}: {ast.unparse(node)!r} uses {name!r} where it may be None; ask first:"
            f" '{name} is None or ..', '{name} is not None and ..'"
        )


def _check_type(key: str, node: ast.expr, known: types.Types, expected: str) -> None:
    """Check an expression, which is `expected`, or anything that can be printed."""
    _check_known(key, expression.names(node), known)
    with at(key):
        found = types.type_of(node, known)
        if found != expected and (expected or found in ("tensor", "list")):
            raise ContractError(
                f"{ast.unparse(node)!r} is of type {found}"
                + (f", where {expected} is needed" if expected else ", which no message shows")
            )


def _check_known(key: str, used: set[str], known: Iterable[str]) -> None:
    for name in sorted(used - set(known)):
        raise ContractError(
            f"{key}: {name!r} is no argument, no dtype and no dim of a tensor{guess(name, known)}"
        )


def _check_selector(op: Op, selector: str) -> None:
    name, _, attribute = selector.partition(".")
    for argument in op.arguments:
        if argument.name == name and argument.is_tensor == bool(attribute):
            return
    raise ContractError(
        f"{selector!r} is nothing to choose by: name a string, bool or int argument, or"
        f" '<tensor>.rank'{guess(name, (each.name for each in op.arguments))}"
    )
