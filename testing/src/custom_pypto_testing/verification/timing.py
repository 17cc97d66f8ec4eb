"""How long a call takes, beside torch's own add."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from custom_pypto_testing.case import Case
from custom_pypto_testing.subject import Op

from .calls import Note, describe, make_calls
from .finding import Finding

_ROUNDS = 20
_CALLS_OF_A_ROUND = 10


def check_timing(op: Op, most: int, note: Note) -> Finding:
    """The first call, against torch.add of as many elements as its largest tensor has."""
    del most
    numbers: dict[str, Any] = {}
    calls = make_calls(op, 1, note, lambda case: numbers.update(_measure(case, op.device)))
    text = (
        f"{numbers['host_us']:.1f} us on the host, {numbers['total_us']:.1f} us to the end;"
        f" torch.add of {numbers['add_elements']} elements {numbers['add_host_us']:.1f} and"
        f" {numbers['add_total_us']:.1f} us"
    )
    return Finding(text, numbers={"call": describe(calls.made[0]), **numbers})


def _measure(case: Case, device: str) -> dict[str, Any]:
    """Return the medians of the rounds, of which each times both."""
    call, original = case.call(), case.call()
    elements = max((tensor.numel() for tensor in call.tensors.values()), default=1)
    number = torch.zeros(elements, device=device)
    timed: dict[str, Callable[[], Any]] = {"": call.run, "add_": partial(torch.add, number, number)}
    # An op that counts on what it writes to must not count further than its arguments allow.
    count = 1 if call.mutable else _CALLS_OF_A_ROUND
    times: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        for name, run in timed.items():
            for written, tensor in call.mutable.items():
                tensor.copy_(original.tensors[written])
            host, total = _time(run, count, torch.get_device_module(device).synchronize)
            times.setdefault(f"{name}host_us", []).append(host)
            times.setdefault(f"{name}total_us", []).append(total)
    return {"add_elements": elements, **{name: median(each) for name, each in times.items()}}


def _time(run: Callable[[], Any], count: int, wait: Callable[[], Any]) -> tuple[float, float]:
    """Return the microseconds of a call until it returns, and until the device has done it."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        run()
    launched = time.perf_counter()
    wait()
    end = time.perf_counter()
    return 1e6 * (launched - start) / count, 1e6 * (end - start) / count
