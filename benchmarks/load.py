"""Calls every op from many threads at once, for a long time: `python -m benchmarks.load --help`.

Each thread calls the samples of every loaded op, in an order of its own, and compares results and
written arguments with those of the first call, bit by bit. The last line has calls, errors, wrong
results and how much allocated memory grew, which glibc counts.
"""

from __future__ import annotations

import argparse
import collections
import copy
import ctypes
import gc
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable
from threading import Barrier
from typing import Any

import custom_pypto.core
import torch
from torch import Tensor

ROUNDS = 5
"""After each, the threads wait until memory has been measured."""


class Call:
    """A sample of an op, and what it gave when it was called alone."""

    def __init__(self, op: str, sample: Any) -> None:
        """Call it once."""
        name, _, overload = op.partition(".")
        packet = getattr(torch.ops.custom_pypto, name)
        self.name = f"{op}-{sample.name}"
        self._function: Callable[..., Any] = getattr(packet, overload or "default")
        self._arguments = (sample.args, sample.kwargs)
        self.expected = self._call()

    def is_right(self) -> bool:
        """Call it; return whether it gives the same bits."""
        return all(map(_have_equal_bits, self._call(), self.expected))

    def _call(self) -> list[Tensor]:
        args, kwargs = copy.deepcopy(self._arguments)
        with torch.no_grad():
            result = self._function(*args, **kwargs)
        return list(_find_tensors([result, args, kwargs]))


class Counts:
    """What the threads have seen."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.lock = threading.Lock()
        self.calls = 0
        self.bad: collections.Counter[str] = collections.Counter()


def _find_tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | list | tuple):
        return []
    return list(itertools.chain.from_iterable(map(_find_tensors, parts)))


def _have_equal_bits(left: Tensor, right: Tensor) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype and _bits(left) == _bits(right)


def _bits(tensor: Tensor) -> bytes:
    # Bytes, because NaN differs from itself.
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().data)


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def _allocated() -> int:
    """Return the bytes that malloc has given and not got back: glibc keeps more from Linux."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    found = mallinfo2()
    return int(found.uordblks + found.hblkhd)


def _work(calls: list[Call], seed: int, seconds: float, counts: Counts, barrier: Barrier) -> None:
    order = random.Random(seed)
    for _ in range(ROUNDS):
        until = time.monotonic() + seconds / ROUNDS
        while time.monotonic() < until:
            call = order.choice(calls)
            fault = ""
            try:
                if not call.is_right():
                    fault = f"wrong: {call.name}"
            except Exception as error:
                fault = f"error: {call.name}: {error}"
            with counts.lock:
                counts.calls += 1
                if fault:
                    counts.bad[fault] += 1
        # All wait until memory has been measured.
        barrier.wait()
        barrier.wait()


def main() -> int:
    """Run; return 1 if a call failed or gave a wrong result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    calls = [
        Call(op.name, sample)
        for op in custom_pypto.core.ops()
        for sample in custom_pypto.core.samples(op.name)
    ]
    counts = Counts()
    barrier = Barrier(options.threads + 1)
    seconds = options.minutes * 60
    threads = [
        threading.Thread(target=_work, args=(calls, seed, seconds, counts, barrier))
        for seed in range(options.threads)
    ]
    for thread in threads:
        thread.start()
    sizes = []
    for _ in range(ROUNDS):
        barrier.wait()
        gc.collect()
        sizes.append(_allocated())
        barrier.wait()
    for thread in threads:
        thread.join()
    for fault, count in counts.bad.most_common():
        print(f"{count} times {fault}")
    wrong = sum(count for fault, count in counts.bad.items() if fault.startswith("wrong"))
    print(
        f"{options.threads} threads, {options.minutes:g} minutes, {len(calls)} samples:"
        f" {counts.calls} calls, {counts.bad.total() - wrong} errors, {wrong} wrong results,"
        f" {sizes[0] / 2**20:.1f} MiB allocated after a fifth, then"
        f" {', '.join(f'{(size - sizes[0]) / 2**20:+.2f}' for size in sizes[1:])}"
    )
    return 1 if counts.bad else 0


if __name__ == "__main__":
    sys.exit(main())
