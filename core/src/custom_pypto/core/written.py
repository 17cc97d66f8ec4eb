"""Checks of the tensors that a call writes to, for Python kernels; mutation.h has them in C++."""

from __future__ import annotations

from typing import Any

import torch

from custom_pypto.core.symbols import decide_statically


class Written:
    """The tensors that one call of an op writes to.

    Without `bumps`, as for a fake, they are only checked.
    """

    def __init__(self, op: str, *, bumps: bool) -> None:
        """Start with no tensor of a call of `op`."""
        self._op = op
        self._bumps = bumps
        self._tensors: list[tuple[str, torch.Tensor]] = []

    def add(self, argument: str, value: Any) -> None:
        """Check an argument (a tensor, a list or None), and tell autograd that it is written to.

        Raises:
            RuntimeError: elements share memory, or autograd forbids the write.
        """
        if value is None:
            return
        if not isinstance(value, torch.Tensor):
            for each in value:
                self.add(argument, each)
            return
        # Where symbols leave it open, the kernel checks.
        if decide_statically(value.numel() != 0):
            self._expect_own_elements(argument, value)
            self._expect_own_start(argument, value)
        if self._bumps:
            self._bump(argument, value)

    def _expect_own_elements(self, argument: str, tensor: torch.Tensor) -> None:
        for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if decide_statically(size > 1) and decide_statically(stride == 0):
                raise RuntimeError(
                    f"{self._op}: argument '{argument}' is written in place, but all {size} of its"
                    f" dimension {dim} are at the same memory (stride 0), as expand() makes them;"
                    " pass a tensor with memory for each element, such as its contiguous()"
                )

    def _expect_own_start(self, argument: str, tensor: torch.Tensor) -> None:
        for other, earlier in self._tensors:
            if _is_same_start(earlier, tensor):
                raise RuntimeError(
                    f"{self._op}: argument '{argument}' is written in place, but begins at the same"
                    f" memory as argument '{other}', which is written too; pass a tensor of its"
                    " own, such as a clone()"
                )
        self._tensors.append((argument, tensor))

    def _bump(self, argument: str, tensor: torch.Tensor) -> None:
        written = f"{self._op}: argument '{argument}' is written in place,"
        way_out = "Call the op under torch.no_grad() or pass a detached tensor."
        if torch.is_grad_enabled() and not tensor.is_leaf:
            raise RuntimeError(
                f"{written} but it requires grad and an op that writes to an argument has no"
                f" gradient. {way_out}"
            )
        try:
            # An in-place op that changes nothing, on every device.
            tensor.transpose_(0, 0)
        except RuntimeError as error:
            reason = f"{str(error).rstrip('.')}."
            # torch's own text for inference tensors already says what to do.
            advice = "" if "nference tensor" in reason else f" {way_out}"
            raise RuntimeError(f"{written} which torch refuses: {reason}{advice}") from error


def _is_same_start(one: torch.Tensor, other: torch.Tensor) -> bool:
    # Fake tensors have storages, but no addresses.
    if one.untyped_storage()._cdata != other.untyped_storage()._cdata:
        return False
    starts = [each.storage_offset() * each.element_size() for each in (one, other)]
    return decide_statically(starts[0] == starts[1]) is True
