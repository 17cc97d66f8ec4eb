"""One call's arguments under the checks of a contract, with sizes that may be symbols."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from custom_pypto_contract import checks, expression
from custom_pypto_contract.checks import Bind, Branch, Check, Step
from custom_pypto_contract.contract import Op, Rule
from custom_pypto_contract.expression import Decide, Message

from custom_pypto.core.symbols import decide_statically


class Evaluation:
    """The arguments of one call, by name, and the dims that they have.

    `decide` says what holds where sizes are symbols: `decide_statically` refuses what is certainly
    wrong and guards nothing, `bool` guards. Sizes that must be equal are related, by
    `torch._check`, where both are symbols: so a fake kernel loses no relation, and makes no dynamic
    size a constant.
    """

    def __init__(
        self, op: Op, given: Mapping[str, Any], decide: Decide = decide_statically
    ) -> None:
        self.dims: dict[str, Any] = {}
        self._op = op
        self._given = given
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
                if not (step.may_be_bound and step.dim in self.dims):
                    self.dims[step.dim] = self.value(step.value)
            else:
                self.run(self._case(step))

    def run_checks(self) -> Evaluation:
        """Run all checks of the op's arguments. Returns itself."""
        self.run(checks.steps(self._op))
        return self

    def run_rules(self, rules: Iterable[Rule]) -> None:
        """Check rules, whose dims must be bound."""
        self.run(checks.of_rules(self._op, rules))

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression."""
        return expression.evaluate(node, self.value_of, self.decide)

    def value_of(self, name: str) -> Any:
        """Return the value of a dim, an argument, a dtype or ``name.attribute``."""
        head, _, attribute = name.partition(".")
        if not attribute:
            if head in self._op.dims:
                return self.dims.get(head)
            value = self._given.get(head, head)
            return dtype_name(value) if isinstance(value, torch.dtype) else value
        if head in self.dims:
            return len(self.dims[head])
        return _ATTRIBUTES[attribute](self._given[head])

    def _case(self, branch: Branch) -> tuple[Step, ...]:
        for condition, steps in branch.cases:
            if self.value(condition) is True:
                return steps
        return ()

    def _check(self, step: Check) -> None:
        if step.is_of_sizes:
            self._relate(step)
        elif self.value(step.that) is False:
            raise RuntimeError(self._text(step))

    def _relate(self, step: Check) -> None:
        assert isinstance(step.that, ast.Compare)
        found, expected = self.value(step.that.left), self.value(step.that.comparators[0])
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
        return f"{self._op.name}: argument '{step.argument}' {self._message(step.says)}"

    def _message(self, says: Message) -> str:
        return "".join(part if isinstance(part, str) else _shown(self.value(part)) for part in says)


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype as contracts and kernels write it."""
    return str(dtype).removeprefix("torch.")


def _is_contiguous(tensor: torch.Tensor) -> bool | None:
    """Return whether a tensor is contiguous; None where sizes that no input has leave that open."""
    try:
        return tensor.is_contiguous()
    except RuntimeError as error:
        # As in `decide_statically`.
        from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

        if isinstance(error, GuardOnDataDependentSymNode):
            return None
        raise


_ATTRIBUTES: Mapping[str, Callable[[torch.Tensor], Any]] = {
    "rank": torch.Tensor.dim,
    "shape": lambda tensor: list(tensor.shape),
    "strides": lambda tensor: list(tensor.stride()),
    "dtype": lambda tensor: dtype_name(tensor.dtype),
    "device": lambda tensor: tensor.device,
    "is_contiguous": _is_contiguous,
}


def _shown(value: Any) -> str:
    """Return a value as C++ prints it."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
