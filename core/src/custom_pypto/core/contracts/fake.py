"""The fake kernel that a contract comes to: its checks, and its outputs without their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from custom_pypto_contract import checks
from custom_pypto_contract.contract import Output
from custom_pypto_contract.shape import resolve

from .arguments import by_name
from .evaluation import Evaluation
from .lazy import LazyContract


def fake_kernel(contract: LazyContract) -> Callable[..., Any]:
    """Return the fake kernel of an op, for symbolic and concrete sizes alike.

    It refuses in the kernels' words what can be refused without looking at values.
    """

    def fake(*args: Any, **kwargs: Any) -> Any:
        op = contract.op
        if op.outputs is None:
            raise RuntimeError(
                f"{op.name} has no fake kernel, so it cannot be compiled or exported: say in"
                " ops.toml what its outputs are, or return one from the hook custom_pypto_fakes"
            )
        given = by_name(op, args, kwargs)
        evaluation = Evaluation(op, given)
        evaluation.run(checks.steps(op))
        made = tuple(_empty(output, given, evaluation) for output in op.outputs)
        return made[0] if len(made) == 1 else made or None

    fake.__name__ = fake.__qualname__ = contract.function_name
    return fake


def _empty(output: Output, given: Mapping[str, Any], evaluation: Evaluation) -> torch.Tensor:
    if output.like is not None:
        return torch.empty_like(given[output.like])
    sizes: list[Any] = []
    for dim in resolve(output.shape, evaluation.value_of):
        value = evaluation.value(dim.expression)
        if dim.is_variadic:
            sizes.extend(value)
        else:
            sizes.append(value)
    first = next(each for each in given.values() if isinstance(each, torch.Tensor))
    same = output.dtype.same_as
    dtype = given[same].dtype if same else getattr(torch, output.dtype.allowed[0])
    return first.new_empty(sizes, dtype=dtype)
