"""Times one sample of an op against its reference, and against the peak of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from custom_pypto import core
from custom_pypto.core.contracts import bind_arguments, evaluate_cost
from torch.utils.flop_counter import FlopCounterMode

from custom_pypto_testing.case import Case, describe_arguments
from custom_pypto_testing.ops_under_test import op_of_plugin
from custom_pypto_testing.outputs import tensor_outputs

from .interleaved import Timed, time_interleaved
from .measured import Measured
from .peaks import Work, at_peak, find_peaks, timed

# Data that fits a cache is not bound by memory.
_CACHED_BYTES = 2**25


def sample_names(op: str) -> list[str]:
    """Return the names of the samples of an op on the CPU."""
    return [case.sample.name for case in op_of_plugin(op, "cpu").cases]


def measure_call(
    plugin: str, op: str, sample: str, seconds: float, *, compiles: bool = True
) -> Measured:
    """Time a sample of an op, its reference, torch.compile of that, and the peaks, for `seconds`.

    `at_peak` is how long the call would take at the peaks; None where it costs few bytes alone, and
    where the peak is not known.
    """
    [case] = [case for case in op_of_plugin(op, "cpu").cases if case.sample.name == sample]
    call = case.copy()
    contract = core.contract(op)
    given = bind_arguments(contract, call.args, call.kwargs)
    costs = {
        name: evaluate_cost(contract, getattr(contract, name), given) for name in ("flops", "bytes")
    }
    if costs == {"flops": None, "bytes": None}:
        costs = _costs_without_contract(case)
    flops, moved = costs["flops"] or 0, costs["bytes"] or 0
    work = [Work(flops, moved if moved > _CACHED_BYTES else 0)]
    peaks = find_peaks(work, core.cpu_isa(plugin), _dtype(call))
    with torch.inference_mode():
        calls = {"ours": _on_copies(call, case.op.overload)}
        if case.op.reference is not None:
            calls["reference"] = _on_copies(call, case.op.reference.function)
            if compiles:
                calls |= _compiled(call, case.op.reference.function)
        times = time_interleaved(calls | timed(peaks), seconds, most=1000)
    return Measured(
        op,
        sample,
        {name: times[name] for name in calls},
        at_peak(work, peaks, times),
        torch.get_num_threads(),
        describe_arguments(given),
        costs["flops"],
        costs["bytes"],
    )


def _dtype(call: Case) -> torch.dtype:
    """Return the dtype of the products of a call."""
    dtypes = [each.dtype for each in call.tensors.values()]
    floats = (each for each in dtypes if each.is_floating_point)
    return torch.int8 if torch.int8 in dtypes else next(floats, torch.float32)


def _costs_without_contract(case: Case) -> dict[str, int | None]:
    """Return the flops of torch's products in the reference, and the bytes of all tensors."""
    call = case.copy()
    with torch.no_grad():
        tensors = [*call.tensors.values(), *tensor_outputs(call.run()).values()]
        again = case.copy()
        with FlopCounterMode(display=False) as counter:
            if case.op.reference is not None:
                case.op.reference.function(*again.args, **again.kwargs)
    return {"flops": counter.get_total_flops(), "bytes": sum(each.nbytes for each in tensors)}


def _compiled(call: Case, function: Callable[..., object]) -> Mapping[str, Timed]:
    """Return the compiled function; nothing where the machine cannot compile it."""
    compiled = _on_copies(call, torch.compile(function))
    try:
        compiled.run()
    except Exception:
        # There is no C++ compiler, for example.
        return {}
    return {"compiled": compiled}


def _on_copies(call: Case, function: Callable[..., object]) -> Timed:
    """Return a call; what it writes to is restored before each run."""
    own = call.copy()
    written = own.mutable

    def restore() -> None:
        for name, tensor in call.mutable.items():
            written[name].copy_(tensor)

    return Timed(partial(function, *own.args, **own.kwargs), restore if written else None)
