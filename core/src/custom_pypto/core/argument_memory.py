"""The memory of a call's tensors: what they take, what is written, and whether two overlap.

argument_memory.h has the same in C++.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

import torch

from custom_pypto.core.symbols import decide_statically

Argument = tuple[str, bool, torch.Tensor]
"""The name of an argument, whether the op writes it, and a tensor in it."""

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
        """Sizes and strides are in elements; an element has `element_size` bytes."""
        # The stride and the number of the copies on each level, the innermost first.
        self.levels: list[tuple[int, int]] = []
        # The number of bytes from the first to the last, of the run and of each level.
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


def check_writes(op: str, arguments: Sequence[Argument]) -> None:
    """Check each written tensor alone, against the other written ones, and against those only read.

    Raises:
        RuntimeError: memory is shared, unless a read argument is exactly the same view.
    """
    written: list[tuple[str, torch.Tensor]] = []
    for name, is_mutated, tensor in arguments:
        if is_mutated:
            # Where symbols leave it open, the kernel checks.
            if decide_statically(tensor.numel() != 0):
                _expect_own_elements(op, name, tensor)
            for other, earlier in written:
                _expect_apart(op, name, tensor, other, earlier, "written too")
            written.append((name, tensor))
    for name, is_mutated, tensor in arguments:
        for other, earlier in () if is_mutated else written:
            has_symbols = byte_runs(tensor) is None or byte_runs(earlier) is None
            if not has_symbols and not _is_same_view(earlier, tensor):
                _expect_apart(op, other, earlier, name, tensor, "read")


def count_writes(op: str, arguments: Sequence[Argument]) -> None:
    """Check that autograd allows every write; then bump all version counters.

    Raises:
        RuntimeError: autograd forbids a write.
    """
    written = [(name, tensor) for name, is_mutated, tensor in arguments if is_mutated]
    for name, tensor in written:
        _expect_writable(op, name, tensor)
    for _, tensor in written:
        # An in-place op that changes nothing, on every device.
        tensor.transpose_(0, 0)


def _expect_own_elements(op: str, argument: str, tensor: torch.Tensor) -> None:
    written = f"{op}: argument '{argument}' is written in place, but"
    advice = "; pass a tensor with memory for each element, such as its contiguous()"
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if decide_statically(size > 1) and decide_statically(stride == 0):
            raise RuntimeError(
                f"{written} all {size} of its dimension {dim} are at the same memory (stride"
                f" 0), as expand() makes them{advice}"
            )
    runs = byte_runs(tensor)
    if runs is not None and runs.may_repeat:
        raise RuntimeError(
            f"{written} with its sizes {list(tensor.shape)} and strides"
            f" {list(tensor.stride())} several elements may be at the same memory{advice}"
        )


def _expect_apart(
    op: str, argument: str, tensor: torch.Tensor, other: str, earlier: torch.Tensor, how: str
) -> None:
    overlap = _overlap_of_tensors(tensor, earlier)
    if overlap is not Overlap.NONE:
        verb = "overlaps" if overlap is Overlap.CERTAIN else "may overlap"
        raise RuntimeError(
            f"{op}: argument '{argument}' is written in place, but {verb} argument"
            f" '{other}', which is {how}; pass a tensor of its own, such as a clone() made"
            " outside of compiled code: Inductor drops clones"
        )


def _expect_writable(op: str, argument: str, tensor: torch.Tensor) -> None:
    has_gradient = torch.is_grad_enabled() and tensor.requires_grad
    if not has_gradient and not tensor.is_inference():
        return
    written = f"{op}: argument '{argument}' is written in place,"
    way_out = "Call the op under torch.no_grad() or pass a detached tensor."
    if has_gradient and not tensor.is_leaf:
        raise RuntimeError(
            f"{written} but it requires grad and an op that writes to an argument has no"
            f" gradient. {way_out}"
        )
    try:
        # Where torch allows it, it counts no version.
        tensor.transpose_(0, 0)
    except RuntimeError as error:
        reason = f"{str(error).rstrip('.')}."
        # torch's own text for inference tensors already says what to do.
        advice = "" if "nference tensor" in reason else f" {way_out}"
        raise RuntimeError(f"{written} which torch refuses: {reason}{advice}") from error


def _overlap_of_tensors(one: torch.Tensor, other: torch.Tensor) -> Overlap:
    # Fake tensors have storages, but no addresses.
    if one.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return Overlap.NONE
    # Where symbols leave it open, the kernel checks.
    if not all(decide_statically(each.numel() != 0) for each in (one, other)):
        return Overlap.NONE
    starts = [each.storage_offset() * each.element_size() for each in (one, other)]
    runs = byte_runs(one), byte_runs(other)
    if runs[0] is not None and runs[1] is not None:
        return overlap_of(runs[0], runs[1], int(starts[1] - starts[0]))
    return Overlap.CERTAIN if decide_statically(starts[0] == starts[1]) else Overlap.NONE


def _is_same_view(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether the elements of two tensors that share memory are the same, one by one."""
    views = [
        [dim for dim in zip(each.shape, each.stride(), strict=True) if dim[0] != 1]
        for each in (one, other)
    ]
    return (
        one.storage_offset() == other.storage_offset()
        and one.dtype == other.dtype
        and views[0] == views[1]
    )
