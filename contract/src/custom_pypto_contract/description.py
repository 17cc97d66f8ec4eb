"""A contract in words, for `help` and ``custom-pypto info``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .contract import Dtypes, Op, Rule, Tensor
from .errors import any_of
from .schema import Argument
from .shape import Choice, Tree, shape_text


def describe(op: Op) -> str:
    """Return what the contract of an op says, in lines of text without an end."""
    return "\n".join(_lines(op))


def _lines(op: Op) -> Iterator[str]:
    yield op.schema.text
    if op.about:
        yield f"\n{op.about}"
    if op.definition:
        yield f"\nIn PyTorch: {op.definition}"
    tensors = {tensor.name: tensor for tensor in op.tensors}
    rows = [(each.name, _argument(op, each, tensors.get(each.name))) for each in op.arguments]
    if op.tensors or op.rules:
        yield "\nArguments"
        yield from _table(rows)
    if op.outputs:
        yield "\nReturns"
        yield from _table(
            [
                (
                    each.name,
                    f"like {each.like}" if each.like else _shape_and_dtype(each.shape, each.dtype),
                )
                for each in op.outputs
            ]
        )
    words = {name: text for name, text in op.words.items() if name in op.dims}
    if words:
        yield "\nSizes"
        yield from _table(list(words.items()))
    for kernel, rules in op.npu.limits.items():
        yield f"\nOn an NPU{f', by {kernel}' if kernel else ''}"
        yield from (f"  {_condition(rule)}" for rule in rules)


def _table(rows: list[tuple[str, str]]) -> Iterator[str]:
    width = max(len(name) for name, _ in rows)
    yield from (f"  {name:{width}}  {text}".rstrip() for name, text in rows)


def _argument(op: Op, argument: Argument, tensor: Tensor | None) -> str:
    parts = [_shape_and_dtype(tensor.shape, tensor.dtype)] if tensor else [argument.type]
    if tensor and tensor.is_optional:
        parts.append("or None")
    if argument.default not in (None, "None"):
        parts.append(f"default {argument.default}")
    if argument.is_mutable:
        parts.append("written in place")
    if tensor and isinstance(tensor.required, Choice):
        parts.append(f"required with {_cases(tensor.required)}")
    parts += [
        _condition(rule)
        for rule in op.rules
        if rule.of == argument.name and op.is_of_scalars(rule) and not argument.is_tensor
    ]
    return "; ".join(part for part in parts if part)


def _shape_and_dtype(shape: Tree, dtype: Dtypes) -> str:
    words = [*dtype.allowed, *([f"dtype of {dtype.same_as}"] if dtype.same_as else [])]
    return ", ".join(filter(None, [_shape(shape), any_of(words) if words else ""]))


def _shape(tree: Tree) -> str:
    if tree is None:
        return ""
    if isinstance(tree, Choice):
        cases = (f"{_shape(each)} with {_case(tree, value)}" for value, each in tree.of.items())
        return ", ".join(cases)
    return shape_text(tree)


def _cases(choice: Choice) -> str:
    return any_of(_case(choice, value) for value in choice.of)


def _case(choice: Choice, value: object) -> str:
    if choice.ranked is not None:
        return f"a {value}-D {choice.ranked}"
    return f"{choice.selector}={value!r}"


def _condition(rule: Rule) -> str:
    when = "" if rule.when is None else f" if {ast.unparse(rule.when)}"
    return f"{ast.unparse(rule.that)}{when}"
