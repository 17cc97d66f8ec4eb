"""Results for torch's numbers of threads, which tests of kernels change for a while."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from custom_pypto_testing.timing.interleaved import torch_threads as use_threads
from torch import Tensor


def assert_threads_do_not_matter(compute: Callable[[], Sequence[Tensor]], *counts: int) -> None:
    """Check that tensors have the same bits with one thread and with each of these numbers."""
    with use_threads(1):
        expected = compute()
    for count in counts:
        with use_threads(count):
            results = compute()
        for index, (left, right) in enumerate(zip(results, expected, strict=True)):
            assert torch.equal(left, right), f"result {index} with {count} threads"
