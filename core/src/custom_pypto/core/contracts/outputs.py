"""An op's outputs without their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from custom_pypto_contract.contract import OpContract, Output
from custom_pypto_contract.shape import resolve

from .evaluation import Evaluation


def empty_outputs(op: OpContract, given: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    """Check the arguments of a call, and return what its outputs are.

    Raises:
        RuntimeError: a check fails; the text is that of the kernels.
    """
    evaluation = Evaluation(op, given).run_checks()
    return tuple(_empty(output, given, evaluation) for output in op.outputs or ())


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
