"""Describes a contract in words, for `help`, ``custom-pypto info`` and the README of a plugin."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from .contract import Dtypes, OpContract, Output, Rule, Tensor
from .errors import any_of
from .schema import Argument
from .shape import Choice, Tree, shape_text


def describe(op: OpContract) -> str:
    """Return the contract of an op as lines of text, without a line break at the end."""
    return "\n".join(_lines(op))


def _lines(op: OpContract) -> Iterator[str]:
    yield op.schema.text
    if op.summary:
        yield f"\n{op.summary}"
    if op.definition:
        yield f"\nIn PyTorch: {op.definition}"
    tensors = {tensor.name: tensor for tensor in op.tensors}
    described = op.arguments if op.tensors or op.rules else ()
    sections = {
        "Arguments": {
            each.name: _describe_argument(op, each, tensors.get(each.name)) for each in described
        },
        "Returns": {each.name: _describe_output(each) for each in op.outputs or ()},
        "Sizes": {name: text for name, text in op.descriptions.items() if name in op.dims},
        "Cost of a call": {
            name: _describe_tree(tree, ast.unparse)
            for name, tree in (("flops", op.flops), ("bytes", op.bytes))
            if tree is not None
        },
    }
    for title, rows in sections.items():
        if rows:
            yield f"\n{title}"
            width = max(map(len, rows))
            yield from (f"  {name:{width}}  {text}".rstrip() for name, text in rows.items())
    for kernel, condition in op.npu.supports.items():
        yield f"\nOn an NPU, {kernel} is used where"
        yield f"  {ast.unparse(condition)}"
    for kernel, rules in op.npu.limits.items():
        yield f"\nLimits of {kernel or 'NPU kernels'}"
        yield from (f"  {_describe_rule(rule)}" for rule in rules)


def _describe_output(output: Output) -> str:
    if output.like:
        return f"like {output.like}"
    length = f"{output.length.text} tensors; " if output.length else ""
    return length + _describe_shape_and_dtype(output.shape, output.dtype)


def _describe_argument(op: OpContract, argument: Argument, tensor: Tensor | None) -> str:
    parts = [argument.type]
    if tensor:
        length = "any number of" if tensor.length is None else tensor.length.text
        parts = [
            f"{length} tensors" if tensor.is_list else "",
            _describe_shape_and_dtype(tensor.shape, tensor.dtype),
        ]
    if tensor and tensor.is_optional:
        parts.append("or None")
    if argument.default not in (None, "None"):
        parts.append(f"default {argument.default}")
    if argument.is_mutable:
        parts.append("written in place")
    if tensor and isinstance(tensor.required_when, Choice):
        cases = (_describe_case(tensor.required_when, each) for each in tensor.required_when.trees)
        parts.append(f"required with {any_of(cases)}")
    parts += [
        _describe_rule(rule)
        for rule in op.rules
        if rule.argument == argument.name and op.reads_only_scalars(rule) and not argument.is_tensor
    ]
    return "; ".join(part for part in parts if part)


def _describe_shape_and_dtype(shape: Tree, dtype: Dtypes) -> str:
    words = [*dtype.allowed, *([f"dtype of {dtype.same_as}"] if dtype.same_as else [])]
    parts = [_describe_tree(shape, shape_text), any_of(words) if words else ""]
    return ", ".join(filter(None, parts))


def _describe_tree(tree: Tree, describe_leaf: Callable[[Any], str]) -> str:
    if tree is None:
        return ""
    if isinstance(tree, Choice):
        return ", ".join(
            f"{_describe_tree(each, describe_leaf)} with {_describe_case(tree, value)}"
            for value, each in tree.trees.items()
        )
    return describe_leaf(tree)


def _describe_case(choice: Choice, value: object) -> str:
    return f"a {value}-D {choice.tensor}" if choice.tensor else f"{choice.selector}={value!r}"


def _describe_rule(rule: Rule) -> str:
    when = "" if rule.when is None else f" if {ast.unparse(rule.when)}"
    return f"{ast.unparse(rule.check)}{when}"
