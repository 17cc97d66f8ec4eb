"""Torch's number of threads, which tests of kernels change for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Run a block with so many threads, which a thread that begins in it has too.

    Only one thread at a time may be in such a block: the number is of the process as well.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def assert_threads_do_not_matter(compute: Callable[[], Sequence[Tensor]], *counts: int) -> None:
    """Check that tensors have the same bits with one thread and with each of these numbers."""
    with use_threads(1):
        expected = compute()
    for count in counts:
        with use_threads(count):
            results = compute()
        for index, (left, right) in enumerate(zip(results, expected, strict=True)):
            assert torch.equal(left, right), f"result {index} with {count} threads"
