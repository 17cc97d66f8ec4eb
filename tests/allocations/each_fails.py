"""Calls each op with each allocation of its library, and of torch's memory, failing once.

Run with count.so preloaded. Each call must be refused; the next one must be right.
"""

import copy
import ctypes
import re
import sys
import threading
from typing import Any

import custom_pypto.core
import torch
from custom_pypto.core.namespace import find_overload
from torch import Tensor

NAMES = [record.name for record in custom_pypto.core.ops()]

counter = ctypes.CDLL(sys.argv[1])
counter.fail_allocation.argtypes = [ctypes.c_long]


def find_bits(value: Any) -> list[bytes]:
    """Return the bits of each tensor in `value`."""
    if isinstance(value, Tensor):
        return [bytes(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)]
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list | tuple):
        return []
    return [bits for part in parts for bits in find_bits(part)]


def call_in_new_thread(op: str, sample: Any, failing: int) -> tuple[int, tuple[Any, ...]]:
    """Return how many allocations there were; the error, and the bits of results and arguments.

    A thread that is new has no scratch of an earlier call.
    """
    args = copy.deepcopy((sample.args, dict(sample.kwargs)))
    seen: list[Any] = ["", None, 0]

    def run() -> None:
        counter.fail_allocation(failing)
        try:
            seen[1] = find_overload(op)(*args[0], **args[1])
        except (RuntimeError, MemoryError) as error:
            seen[0] = f"{type(error).__name__}: {error}"
        seen[2] = counter.counted_allocations()
        counter.fail_allocation(0)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return seen[2], (seen[0], find_bits(seen[1]), find_bits(args))


def count_refusals(op: str, sample: Any) -> int:
    """Check the calls; return how many were refused."""
    before = find_bits((sample.args, dict(sample.kwargs)))
    _, expected = call_in_new_thread(op, sample, 0)
    assert not expected[0]
    failing = 1
    while True:
        count, (error, _, arguments) = call_in_new_thread(op, sample, failing)
        if count < failing:
            return failing - 1
        # The fused op calls its pieces. Torch's reference counts are made before a name is known.
        assert re.match(rf"RuntimeError: ({'|'.join(NAMES)}): |MemoryError: ", error), (op, error)
        assert arguments == before, (op, failing)
        assert call_in_new_thread(op, sample, 0)[1] == expected, (op, failing)
        failing += 1


torch.set_num_threads(2)
torch.set_grad_enabled(False)
for record in custom_pypto.core.ops():
    counter.fail_allocation(0)
    libraries = [f"libcustom_pypto_{record.plugin}.so", "libc10.so"]
    if record.name == "npu_sparse_attention_pto":
        libraries.append("libcustom_pypto_lightning_indexer.so")  # it calls that plugin's op
    calls = custom_pypto.core.samples(record.name)[:2]
    refused = 0
    for library in libraries:
        assert counter.count_allocations_of(library.encode()) == 1, library
        refused += (found := sum(count_refusals(record.name, sample) for sample in calls))
        assert found or library == "libc10.so", library
    print(record.name, refused)
