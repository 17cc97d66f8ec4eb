"""One call's arguments and outputs by its contract, with sizes that may be symbols."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from custom_pypto_contract import checks
from custom_pypto_contract.attributes import ALL_ATTRIBUTES, COST_ATTRIBUTES
from custom_pypto_contract.checks import Bind, Branch, Check, Each, Step
from custom_pypto_contract.contract import OpContract, Output, Rule
from custom_pypto_contract.evaluate import Decide, evaluate
from custom_pypto_contract.nodes import INDEX, list_of
from custom_pypto_contract.shape import resolve
from custom_pypto_discovery.printable import printable

from custom_pypto.core.call_text import name_dtype
from custom_pypto.core.symbols import decide_by_hints, decide_statically


class Evaluation:
    """The arguments of one call, by name, and the dims that they have.

    `decide` evaluates conditions of symbolic sizes: `decide_statically` refuses only certain faults
    and adds no guard, `bool` adds guards. Two symbols that must be equal are related by
    `torch._check`: a fake kernel loses no relation, and makes no dynamic size a constant.
    """

    def __init__(
        self, op: OpContract, given: Mapping[str, Any], decide: Decide = decide_statically
    ) -> None:
        self.dims: dict[str, Any] = {}
        self._op = op
        self._given = given
        self._index = 0
        self.decide = decide

    def run(self, steps: Iterable[Step]) -> None:
        """Check, and bind dims.

        Raises:
            RuntimeError: a check fails; the text is that of the kernels.
        """
        for step in steps:
            if isinstance(step, Check):
                self._check(step)
            elif isinstance(step, Bind):
                self._bind(step)
            elif isinstance(step, Each):
                for index in range(self.value(step.count)):
                    self._index = index
                    self.run(step.steps)
            else:
                self.run(self._case(step))

    def _bind(self, step: Bind) -> None:
        if list_of(step.dim) != step.dim:
            sizes = self.dims.setdefault(list_of(step.dim), [])
            if len(sizes) <= self._index:
                sizes.append(self.value(step.value))
        elif not (step.may_be_bound and step.dim in self.dims):
            self.dims[step.dim] = self.value(step.value)

    def value_at(self, index: int, node: ast.expr) -> Any:
        """Return the value of an expression for the tensor at `index` of a list."""
        self._index = index
        return self.value(node)

    def run_checks(self) -> Evaluation:
        """Run all checks of the op's arguments. Returns itself."""
        self.run(checks.steps(self._op))
        return self

    def run_rules(self, rules: Iterable[Rule]) -> None:
        """Check rules, whose dims must be bound."""
        self.run(checks.rule_steps(self._op, rules))

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        try:
            return evaluate(node, self.value_of, self.decide, torch.sym_min, decide_by_hints)
        except OverflowError as error:
            raise RuntimeError(f"{self._op.name}: {error}") from None

    def value_of(self, name: str) -> Any:
        """Return the value of a dim, an argument, a dtype or ``name.attribute``."""
        head, _, attribute = name.partition(".")
        if not attribute:
            if head in self._op.dims:
                return self.dims.get(head)
            if head == INDEX and self._op.dims_of_elements:
                return self._index
            value = self._given.get(head, head)
            return name_dtype(value) if isinstance(value, torch.dtype) else value
        if head in self.dims:
            return len(self.dims[head])
        if list_of(head) == head:
            return read_attribute(self._given[head], attribute)
        if list_of(head) in self.dims:
            return len(self.dims[list_of(head)][self._index])
        return read_attribute(self._given[list_of(head)][self._index], attribute)

    def _case(self, branch: Branch) -> tuple[Step, ...]:
        for condition, steps in branch.cases:
            if self.value(condition) is True:
                return steps
        return ()

    def _check(self, step: Check) -> None:
        if step.is_of_sizes:
            self._relate(step)
        elif self.value(step.condition) is False:
            raise RuntimeError(self._text(step))

    def _relate(self, step: Check) -> None:
        assert isinstance(step.condition, ast.Compare)
        found, expected = self.value(step.condition.left), self.value(step.condition.comparators[0])
        if not isinstance(found, list):
            found, expected = [found], [expected]
        if len(found) != len(expected):
            raise RuntimeError(self._text(step))
        for one, other in zip(found, expected, strict=True):
            if isinstance(one, torch.SymInt) and isinstance(other, torch.SymInt):
                torch._check(one == other, lambda: self._text(step))  # type: ignore[no-untyped-call]
            elif self.decide(one == other) is False:
                raise RuntimeError(self._text(step))

    def _text(self, step: Check) -> str:
        name = list_of(step.argument)
        if name != step.argument:
            name = f"{name}[{self._index}]"
        text = f"{self._op.name}: argument '{name}' "
        for part in step.message:
            text += part if isinstance(part, str) else _format(self.value(part))
        return printable(text)


def empty_outputs(
    op: OpContract, given: Mapping[str, Any]
) -> tuple[torch.Tensor | list[torch.Tensor], ...]:
    """Check the arguments of a call, and return what its outputs are.

    Raises:
        RuntimeError: a check fails; the text is that of the kernels.
    """
    evaluation = Evaluation(op, given).run_checks()
    return tuple(_empty(op, output, given, evaluation) for output in op.outputs or ())


def _empty(
    op: OpContract, output: Output, given: Mapping[str, Any], evaluation: Evaluation
) -> torch.Tensor | list[torch.Tensor]:
    like = None if output.like is None else given[output.like]
    if isinstance(like, list | tuple):
        return [
            _allocated(op, f"{output.name}[{i}]", each.shape, partial(torch.empty_like, each))
            for i, each in enumerate(like)
        ]
    if like is not None:
        return _allocated(op, output.name, like.shape, lambda: torch.empty_like(like))
    first = _first_of(given, op.tensor_with_device or "")

    def make(name: str, index: int) -> torch.Tensor:
        sizes, dtype = sizes_and_dtype(output, given, evaluation, index)
        return _allocated(op, name, sizes, lambda: first.new_empty(sizes, dtype=dtype))

    if output.length is None:
        return make(output.name, 0)
    count = evaluation.value(output.length.expression)
    return [make(f"{output.name}[{index}]", index) for index in range(count)]


def _first_of(given: Mapping[str, Any], name: str) -> Any:
    """Return a tensor; for a list its first tensor, or None."""
    value = given[name]
    return next(iter(value), None) if isinstance(value, list | tuple) else value


def sizes_and_dtype(
    output: Output, given: Mapping[str, Any], evaluation: Evaluation, index: int = 0
) -> tuple[list[Any], torch.dtype]:
    """Return what an output, or the tensor at `index` of one, has in a call that is right."""
    if output.like is not None:
        like = given[output.like]
        return list(like.shape), like.dtype
    sizes: list[Any] = []
    for dim in resolve(output.shape, evaluation.value_of):
        value = evaluation.value_at(index, dim.expression)
        sizes.extend(value if dim.is_variadic else [value])
    same = output.dtype.same_as
    return sizes, _first_of(given, same).dtype if same else getattr(torch, output.dtype.allowed[0])


def describe_wrong_output(
    output: Output, value: Any, given: Mapping[str, Any], evaluation: Evaluation
) -> str:
    """Say which output's dtype or shape differs from the contract's; '' if none does."""
    if output.length is not None or not isinstance(value, torch.Tensor):
        return ""
    sizes, dtype = sizes_and_dtype(output, given, evaluation)
    if value.dtype != dtype:
        found, expected = name_dtype(value.dtype), name_dtype(dtype)
    elif value.dim() != len(sizes) or any(
        evaluation.decide(one == other) is False
        for one, other in zip(value.shape, sizes, strict=True)
    ):
        found, expected = str(list(value.shape)), str(sizes)
    else:
        return ""
    return f"{found} for the output '{output.name}', but ops.toml says {expected}"


def _allocated(
    op: OpContract, output: str, sizes: Sequence[Any], make: Callable[[], torch.Tensor]
) -> torch.Tensor:
    try:
        return make()
    except RuntimeError as error:
        if any(isinstance(size, torch.SymInt) for size in sizes):
            # torch's compiler reads some of its own errors.
            raise
        raise RuntimeError(
            printable(f"{op.name}: cannot allocate the output '{output}' {[*sizes]}: {error}")
        ) from error


def read_attribute(tensor: Any, attribute: str) -> Any:
    """Return the value of a tensor's attribute; None where its sizes leave that open.

    A list has a length. Its costs are sums. It has its other attributes from its first tensor;
    they are None if it is empty.
    """
    if isinstance(tensor, list | tuple) and attribute in COST_ATTRIBUTES:
        return sum(read_attribute(each, attribute) for each in tensor)
    if isinstance(tensor, list | tuple) and attribute != "length":
        return read_attribute(tensor[0], attribute) if tensor else None
    try:
        return ALL_ATTRIBUTES[attribute].get(tensor)
    except RuntimeError as error:
        # As in `decide_statically`.
        from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

        if isinstance(error, GuardOnDataDependentSymNode):
            return None
        raise


def _format(value: Any) -> str:
    """Return a value as C++ prints it."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
