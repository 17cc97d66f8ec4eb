"""A function of torch tensors, run on the memory of MindSpore's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import mindspore
import torch

from .memory import to_mindspore, to_torch


@dataclass(frozen=True)
class Computation:
    """A function of torch tensors, and how errors name what goes in and comes out."""

    name: str
    run: Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]
    argument: Callable[[int], str]
    """Names the argument that has the tensor at a place."""
    has_gradient: bool
    """Whether torch can differentiate it; what can be differentiated writes to no argument."""

    def inputs(self, tensors: Sequence[mindspore.Tensor], first: int = 0) -> list[torch.Tensor]:
        """Return the memory of `tensors`, which are the arguments from place `first` on."""
        return [
            to_torch(each, partial(self.argument, at)) for at, each in enumerate(tensors, first)
        ]

    def results(self, outputs: Sequence[torch.Tensor]) -> list[mindspore.Tensor]:
        """Return the memory of what `run` returned."""
        return [to_mindspore(each, lambda: f"{self.name}: a result") for each in outputs]
