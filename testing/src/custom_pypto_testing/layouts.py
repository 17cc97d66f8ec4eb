"""Where the elements of a tensor lie in memory: what a contract's `strides` allow."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import torch

from .meta_tensors import relevant_strides


@dataclass(frozen=True)
class Layout:
    """The order of the dims in memory, how much room each has beyond its size, and an offset."""

    order: tuple[int, ...]
    """The outermost dim first."""
    room: tuple[int, ...]
    """By dim: so many places lie unused behind its last one."""
    step: int = 1
    """The distance of two elements in the innermost dim."""
    offset: int = 0

    def strides(self, sizes: Sequence[int]) -> list[int]:
        """Return the strides of a tensor of `sizes`, in elements."""
        strides, span = [0] * len(sizes), self.step
        for dim in reversed(self.order):
            strides[dim] = span
            span *= max(sizes[dim] + self.room[dim], 1)
        return strides

    def memory(self, like: torch.Tensor) -> torch.Tensor:
        """Return memory for a tensor like this one; filled, so that reading beside it shows."""
        ends = zip(like.shape, self.strides(like.shape), strict=True)
        last = sum((size - 1) * stride for size, stride in ends) if like.numel() else 0
        # 1 is an index that most arguments take.
        return like.new_empty(self.offset + last + 2).fill_(7 if like.is_floating_point() else 1)

    def view(self, memory: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
        """Return the tensor of `sizes` in `memory`."""
        return memory.as_strided(sizes, self.strides(sizes), self.offset)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor in this layout."""
        return self.view(self.memory(tensor), tensor.shape).copy_(tensor)

    def __str__(self) -> str:
        parts = [
            "" if self.order == tuple(sorted(self.order)) else f"dims in the order {[*self.order]}",
            # Room behind the outermost dim is beside the tensor.
            *(f"a gap behind dim {dim}" for dim in self.order[1:] if self.room[dim]),
            "gaps between its elements" if self.step > 1 else "",
            f"an offset of {self.offset}" if self.offset else "",
        ]
        return " and ".join(filter(None, parts)) or "no gaps"


def contiguous(ndim: int) -> Layout:
    """Return the layout without gaps, of the dims in their order."""
    return Layout(tuple(range(ndim)), (0,) * ndim)


def draw_layout(strides: str, ndim: int, random: Random) -> Layout:
    """Draw a layout that `strides` of ops.toml allows."""
    if strides == "contiguous" or ndim == 0:
        return Layout(tuple(range(ndim)), (0,) * ndim, offset=random.choice((0, 1, 5)))
    is_any = strides == "any"
    free = ndim if is_any else ndim - 1
    order = random.sample(range(free), free) if random.random() < 0.5 else [*range(free)]
    return Layout(
        order=(*order, *range(free, ndim)),
        room=tuple(random.choice((0, 0, 1, 3)) for _ in range(ndim)),
        step=random.choice((1, 1, 2)) if is_any else 1,
        offset=random.choice((0, 1, 5)),
    )


def layouts_of(strides: str, sizes: Sequence[int]) -> Iterator[Layout]:
    """Yield each kind of layout that `strides` allows and that gives these sizes other strides.

    One gap at a time, since a kernel may look for one and rely on the others; two dims swapped, and
    all reversed; and an offset, which goes with gaps everywhere where those are allowed.
    """
    ndim = len(sizes)
    plain = contiguous(ndim)
    order, none = plain.order, plain.room
    found = [Layout(order, none, offset=1)]
    if strides != "contiguous" and ndim:
        last = ndim if strides == "any" else ndim - 1
        step = 2 if strides == "any" else 1
        found = [Layout(order, (1,) * ndim, step, offset=1)]
        found += [Layout(order, none, step)] if step > 1 else []
        for dim in range(1, ndim):
            found.append(Layout(order, tuple(int(each == dim) for each in order)))
        for one, other in pairwise(range(last)):
            swapped = {one: other, other: one}
            found.append(Layout(tuple(swapped.get(each, each) for each in order), none))
        found.append(Layout((*reversed(order[:last]), *order[last:]), none))
    if math.prod(sizes) == 0:
        yield found[0]
        return
    seen = set()
    for each in (plain, *found):
        where = relevant_strides(each.strides(sizes), sizes), each.offset
        if where not in seen and each is not plain:
            yield each
        seen.add(where)
