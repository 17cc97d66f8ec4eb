"""The arguments that a call of an op writes to."""

from __future__ import annotations

import torch

from custom_pypto.core.symbols import decide_statically
from custom_pypto.core.tensor_memory import Overlap, byte_runs, overlap_of


class MutatedArguments:
    """The tensors that one call of an op writes to; argument_memory.h has these checks in C++."""

    def __init__(self, op: str) -> None:
        self._op = op
        self._tensors: list[tuple[str, torch.Tensor]] = []

    def add(self, argument: str, tensor: torch.Tensor) -> None:
        """Check a written argument alone, and against those before it.

        Raises:
            RuntimeError: elements share memory.
        """
        # Where symbols leave it open, the kernel checks.
        if decide_statically(tensor.numel() != 0):
            self._expect_own_elements(argument, tensor)
        for other, earlier in self._tensors:
            self._expect_apart(argument, tensor, other, earlier, "written too")
        self._tensors.append((argument, tensor))

    def add_read(self, argument: str, tensor: torch.Tensor) -> None:
        """Check an argument that is only read against all that are written.

        Raises:
            RuntimeError: they share memory, and are not the same elements.
        """
        for name, written in self._tensors:
            has_symbols = byte_runs(tensor) is None or byte_runs(written) is None
            if has_symbols or _is_same_view(written, tensor):
                continue
            self._expect_apart(name, written, argument, tensor, "read")

    def bump(self) -> None:
        """Tell autograd of the writes, after it was asked for all of them.

        Raises:
            RuntimeError: autograd forbids a write.
        """
        for argument, tensor in self._tensors:
            self._expect_writable(argument, tensor)
        for _, tensor in self._tensors:
            # An in-place op that changes nothing, on every device.
            tensor.transpose_(0, 0)

    def _expect_own_elements(self, argument: str, tensor: torch.Tensor) -> None:
        written = f"{self._op}: argument '{argument}' is written in place, but"
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
        self, argument: str, tensor: torch.Tensor, other: str, earlier: torch.Tensor, how: str
    ) -> None:
        overlap = _overlap(tensor, earlier)
        if overlap is not Overlap.NONE:
            verb = "overlaps" if overlap is Overlap.CERTAIN else "may overlap"
            raise RuntimeError(
                f"{self._op}: argument '{argument}' is written in place, but {verb} argument"
                f" '{other}', which is {how}; pass a tensor of its own, such as a clone() made"
                " outside of compiled code: Inductor drops clones"
            )

    def _expect_writable(self, argument: str, tensor: torch.Tensor) -> None:
        has_gradient = torch.is_grad_enabled() and tensor.requires_grad
        if not has_gradient and not tensor.is_inference():
            return
        written = f"{self._op}: argument '{argument}' is written in place,"
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


def _overlap(one: torch.Tensor, other: torch.Tensor) -> Overlap:
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
