"""Times one sample of an op against its reference, and against the peak of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import quantiles
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.call_text import describe_arguments
from custom_pypto.core.contracts import bind_arguments, count_bytes, count_flops
from torch.utils.flop_counter import FlopCounterMode

from .call import Call, tensor_outputs
from .case import Case
from .subject import Subject

_LEAST_ROUNDS = 5
_MOST_ROUNDS = 1000
# As large as makes torch.mm fast, and more than a cache.
_MATRIX = 1024
_READ_BYTES = 2**26
# Data that fits a cache is not bound by memory.
_LEAST_COSTS = {"flops": 0, "bytes": 2**25}

Timed = tuple[Callable[[], object], Callable[[], object]]
"""What is run before each call, untimed, and the call."""


def sample_names(plugin: str, op: str) -> list[str]:
    """Return the names of the samples of an op on the CPU."""
    return [case.sample.name for case in Subject.of_plugin(plugin).op_on(op, "cpu").cases]


def measure_call(
    plugin: str, op: str, sample: str, seconds: float, *, compiles: bool = True
) -> dict[str, Any]:
    """Time a sample of an op, its reference, torch.compile of that, and the peaks.

    Each has its quartiles in `times`, in seconds. The rounds go on for `seconds`, and each makes
    every call once: a machine that slows down slows all alike. `at_peak` is how long the call would
    take at the peaks; None where it costs no more than few bytes.
    """
    [case] = [
        case
        for case in Subject.of_plugin(plugin).op_on(op, "cpu").cases
        if case.sample.name == sample
    ]
    call = case.call()
    given = bind_arguments(contract(op), call.args, call.kwargs)
    costs = {"flops": count_flops(contract(op), given), "bytes": count_bytes(contract(op), given)}
    if costs == {"flops": None, "bytes": None}:
        costs = _costs_without_contract(case)
    peaks = _peaks(call)
    bounds = {name: cost for name, cost in costs.items() if cost and cost > _LEAST_COSTS[name]}
    with torch.inference_mode():
        timed = {"ours": _on_copies(call, case.op)}
        if case.reference is not None:
            timed["reference"] = _on_copies(call, case.reference.function)
            if compiles:
                timed |= _compiled(call, case.reference.function)
        timed |= {name: (_nothing, peaks[name][0]) for name in bounds}
        times = {name: quantiles(each) for name, each in _interleave(timed, seconds).items()}
    least = [cost * times[name][1] / peaks[name][1] for name, cost in bounds.items()]
    return {
        "op": op,
        "sample": sample,
        "arguments": describe_arguments(given),
        "threads": torch.get_num_threads(),
        "times": {name: times[name] for name in timed if name not in peaks},
        **costs,
        "at_peak": max(least, default=None),
    }


def _costs_without_contract(case: Case) -> dict[str, int | None]:
    """Return the flops of torch's products in the reference, and the bytes of all tensors."""
    call = case.call()
    with torch.no_grad():
        tensors = [*call.tensors.values(), *tensor_outputs(call.run()).values()]
        again = case.call()
        with FlopCounterMode(display=False) as counter:
            if case.reference is not None:
                case.reference.function(*again.args, **again.kwargs)
    return {"flops": counter.get_total_flops(), "bytes": sum(each.nbytes for each in tensors)}


def _compiled(call: Call, function: Callable[..., object]) -> dict[str, Timed]:
    """Return the compiled function; nothing where the machine cannot compile it."""
    prepare, run = _on_copies(call, torch.compile(function))
    try:
        run()
    except Exception:
        # There is no C++ compiler, for example.
        return {}
    return {"compiled": (prepare, run)}


def _on_copies(call: Call, function: Callable[..., object]) -> Timed:
    """Return a call that finds what it writes to as it was before."""
    own = call.copy()
    written = own.mutable

    def restore() -> None:
        for name, tensor in call.mutable.items():
            written[name].copy_(tensor)

    return (restore if written else _nothing), partial(function, *own.args, **own.kwargs)


def _nothing() -> None:
    """Prepare nothing."""


def _peaks(call: Call) -> Mapping[str, tuple[Callable[[], object], float]]:
    """Return a call of torch at the peak of ``flops`` and of ``bytes``, and how much it does."""
    dtypes = [each.dtype for each in call.tensors.values() if each.is_floating_point()]
    matrix = torch.ones(
        _MATRIX, _MATRIX, dtype=dtypes[0] if dtypes else torch.float32, device="cpu"
    )
    memory = torch.ones(_READ_BYTES // 8, dtype=torch.int64, device="cpu")
    return {
        "flops": (partial(torch.mm, matrix, matrix), 2.0 * _MATRIX**3),
        "bytes": (memory.sum, float(_READ_BYTES)),
    }


def _interleave(timed: Mapping[str, Timed], seconds: float) -> dict[str, list[float]]:
    for prepare, run in timed.values():
        # Compiles, and wakes threads.
        prepare()
        run()
    times: dict[str, list[float]] = {name: [] for name in timed}
    end = time.perf_counter() + seconds
    for number in range(_MOST_ROUNDS):
        if number >= _LEAST_ROUNDS and time.perf_counter() > end:
            break
        for name, (prepare, run) in timed.items():
            # Once untimed: the caches hold its own data.
            prepare()
            run()
            prepare()
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return times
