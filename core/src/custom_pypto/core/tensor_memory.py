"""The memory of strided tensors: what they take, and whether two of them overlap.

argument_memory.h has the same in C++.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

import torch

_MOST_COMPARISONS = 256
"""Each level can double the number of parts that are compared: an answer takes no longer."""


class Overlap(IntEnum):
    """Whether two tensors have a byte in common."""

    NONE = 0
    POSSIBLE = 1
    CERTAIN = 2


class ByteRuns:
    """The bytes of a tensor with elements: runs of adjacent bytes, repeated level by level."""

    def __init__(self, sizes: Sequence[int], strides: Sequence[int], element_size: int) -> None:
        """Take sizes and strides in elements, of `element_size` bytes each."""
        # The stride and the number of the copies on each level, the innermost first.
        self.levels: list[tuple[int, int]] = []
        # Of the run, and of each level: from its first byte to behind its last.
        self.spans = [element_size]
        # Whether two elements may have a byte in common, copies of stride 0 apart.
        self.may_repeat = False
        # Whether the tensor has every byte of its runs.
        self.is_exact = True
        dims = zip(strides, sizes, strict=True)
        for stride, count in sorted(dim for dim in dims if dim[0] != 0 and dim[1] > 1):
            self._add(stride * element_size, count)

    def _add(self, stride: int, count: int) -> None:
        inside = self.spans[-1]
        whole = (count - 1) * stride + inside
        last_stride, last_count = self.levels[-1] if self.levels else (inside, 1)
        if stride < inside:
            # Copies that interleave or overlap become one run.
            self.may_repeat = True
            self.is_exact = self.is_exact and not self.levels
            self.levels, self.spans = [], [whole]
        elif stride == last_stride * last_count:
            self.spans[-1] = whole
            if self.levels:
                self.levels[-1] = last_stride, last_count * count
        else:
            self.levels.append((stride, count))
            self.spans.append(whole)


def overlap_of(one: ByteRuns, other: ByteRuns, shift: int) -> Overlap:
    """Return whether two tensors overlap; `other` begins `shift` bytes behind `one`."""
    comparisons = iter(range(_MOST_COMPARISONS))
    return _overlap(one, len(one.levels), other, len(other.levels), shift, comparisons)


def _overlap(
    a: ByteRuns, a_depth: int, b: ByteRuns, b_depth: int, shift: int, comparisons: Iterator[int]
) -> Overlap:
    if next(comparisons, None) is None:
        return Overlap.POSSIBLE
    a_span, b_span = a.spans[a_depth], b.spans[b_depth]
    if shift >= a_span or -shift >= b_span:
        return Overlap.NONE
    found = Overlap.CERTAIN if a.is_exact and b.is_exact else Overlap.POSSIBLE
    if a_depth == b_depth == 0:
        return found
    a_stride, a_count = a.levels[a_depth - 1] if a_depth else (0, 1)
    b_stride, b_count = b.levels[b_depth - 1] if b_depth else (0, 1)
    if a_stride < b_stride:
        return _overlap(b, b_depth, a, a_depth, -shift, comparisons)
    inside = a.spans[a_depth - 1]
    if a_stride == b_stride:
        # A copy in `b` begins shift + i * stride behind one in `a`; at most two of these distances
        # are less than a span.
        other = b.spans[b_depth - 1]
        copies = range(
            max(1 - a_count, (-other - shift) // a_stride + 1),
            min(b_count, (inside - shift - 1) // a_stride + 1),
        )
        below, step = b_depth - 1, a_stride
    else:
        # The copies in `a` that reach into the span of `b`.
        copies = range(
            max(0, (shift - inside) // a_stride + 1),
            min(a_count, (shift + b_span - 1) // a_stride + 1),
        )
        if len(copies) > 2:
            return found if b_depth == 0 else Overlap.POSSIBLE
        below, step = b_depth, -a_stride
    return max(
        (_overlap(a, a_depth - 1, b, below, shift + i * step, comparisons) for i in copies),
        default=Overlap.NONE,
    )


def byte_runs(tensor: torch.Tensor) -> ByteRuns | None:
    """Return the bytes of a tensor with elements; None where symbols leave them open."""
    numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
    if any(isinstance(each, torch.SymInt) for each in numbers):
        return None
    return ByteRuns(tensor.shape, tensor.stride(), tensor.element_size())


def expect_memory(op: str, argument: str, tensor: torch.Tensor) -> None:
    """Check that a tensor has strided elements in memory.

    Raises:
        RuntimeError: it is sparse, of another layout, or quantised; or its storage is smaller than
            what its elements need.
    """
    if tensor.layout is not torch.strided:
        raise RuntimeError(
            f"{op}: argument '{argument}' must be a dense tensor; pass its to_dense()"
        )
    if tensor.is_quantized:
        raise RuntimeError(
            f"{op}: argument '{argument}' must not be quantised; pass its dequantize()"
        )
    # Where symbols leave it open, the kernel checks. On meta there is no memory.
    runs = byte_runs(tensor)
    if runs is None or tensor.numel() == 0 or tensor.device.type == "meta":
        return
    needed = tensor.storage_offset() * tensor.element_size() + runs.spans[-1]
    given = tensor.untyped_storage().nbytes()
    if not isinstance(given, torch.SymInt) and given < needed:
        raise RuntimeError(
            f"{op}: argument '{argument}' needs a storage of {needed} bytes, but its storage has"
            f" {given}, as after untyped_storage().resize_(0); resize the storage, or pass another"
            " tensor"
        )
