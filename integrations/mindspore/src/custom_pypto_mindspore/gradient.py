"""Computations that MindSpore records and differentiates: torch computes the derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import mindspore
import torch
from mindspore.common import _Function
from mindspore.graph.api import _pynative_executor

from .memory import to_mindspore, to_torch


@dataclass(frozen=True)
class Computation:
    """A function of torch tensors, and how errors name its arguments and results."""

    name: str
    run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]
    argument: Callable[[int], str]
    """Names the argument that holds the tensor at a place."""
    has_gradient: bool
    """Whether torch can differentiate it; it then writes to no argument."""

    def to_torch(self, tensors: Sequence[mindspore.Tensor], first: int = 0) -> list[torch.Tensor]:
        """Share the memory of `tensors`, the arguments from place `first` on."""
        return [
            to_torch(each, partial(self.argument, at)) for at, each in enumerate(tensors, first)
        ]

    def to_mindspore(self, outputs: Sequence[torch.Tensor]) -> list[mindspore.Tensor]:
        """Share the memory of what `run` returned."""
        return [to_mindspore(each, lambda: f"{self.name}: a result") for each in outputs]


def compute(
    computation: Computation,
    tensors: Sequence[mindspore.Tensor],
    known: Sequence[torch.Tensor] = (),
) -> Sequence[mindspore.Tensor]:
    """Run it on the memory of `tensors`, and record it if MindSpore records.

    `known` are torch's tensors of the first of `tensors`, where they exist already.
    """
    # A node costs MindSpore switches of threads, also if it records nothing.
    if _pynative_executor.requires_grad():
        results: Sequence[mindspore.Tensor] = _Recorded.apply(computation, known, *tensors)
        return results
    with torch.no_grad():
        return computation.to_mindspore(
            computation.run([*known, *computation.to_torch(tensors[len(known) :], len(known))])
        )


class _Recorded(_Function):  # type: ignore[misc]
    """A computation as a node of MindSpore's graph, which holds torch's graph of it."""

    @staticmethod
    def forward(
        ctx: Any,
        computation: Computation,
        known: Sequence[torch.Tensor],
        *tensors: mindspore.Tensor,
    ) -> tuple[mindspore.Tensor, ...]:
        """Run it as `compute` does; torch records for the tensors that need gradients."""
        fresh = computation.to_torch(tensors[len(known) :], len(known))
        for tensor, needed in zip(fresh, ctx.needs_input_grad[2 + len(known) :], strict=True):
            is_wanted = computation.has_gradient and tensor.is_floating_point() and needed
            tensor.requires_grad_(is_wanted)
        inputs = [*known, *fresh]
        is_recorded = any(each.requires_grad for each in inputs)
        with torch.set_grad_enabled(is_recorded):
            outputs = computation.run(inputs)
        results = computation.to_mindspore(outputs)
        ctx.mark_non_differentiable(
            *(
                result
                for result, each in zip(results, outputs, strict=True)
                if not each.is_floating_point()
                or (computation.has_gradient and not each.requires_grad)
            )
        )
        # A tensor that the op wrote to has a new version, and is a result in MindSpore's graph.
        written = [to for to, each in zip(tensors, inputs, strict=True) if each._version]
        ctx.mark_dirty(*written)
        ctx.set_materialize_grads(False)
        ctx.computation = computation
        if is_recorded:
            ctx.save_for_backward(*tensors)
            ctx.inputs, ctx.outputs = inputs, outputs
        return (*results, *written)

    @staticmethod
    def backward(ctx: Any, *grads: mindspore.Tensor | None) -> tuple[mindspore.Tensor | None, ...]:
        """Run torch's backward pass as a computation that can itself be differentiated."""
        name = ctx.computation.name
        if not ctx.computation.has_gradient:
            raise RuntimeError(
                f"{name}: has no gradient; keep its results and what it writes to out of what is"
                " differentiated, by mindspore.ops.stop_gradient"
            )
        given = [
            (output, grad)
            for output, grad in zip(ctx.outputs, grads, strict=True)
            if output.requires_grad and grad is not None
        ]
        wanted = [place for place, each in enumerate(ctx.inputs) if each.requires_grad]
        known = [ctx.inputs[place] for place in wanted]

        def run(tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
            return torch.autograd.grad(
                [output for output, _ in given],
                known,
                tensors[len(known) :],
                retain_graph=True,
                create_graph=torch.is_grad_enabled(),
                allow_unused=True,
                materialize_grads=True,
            )

        label = f"the gradient of {name}"
        found = compute(
            Computation(label, run, lambda _: label, has_gradient=True),
            [*(ctx.saved_tensors[place] for place in wanted), *(grad for _, grad in given)],
            known,
        )
        if _pynative_executor.requires_grad():
            # MindSpore 2.10 drops the node of a view that a backward pass returns: its derivative
            # would be zero. A tensor from DLPack counts as a view.
            found = [each * 1 for each in found]
        result: list[mindspore.Tensor | None] = [None] * (2 + len(ctx.inputs))
        for place, each in zip(wanted, found, strict=True):
            result[2 + place] = each
        return tuple(result)
