"""Calls on a stream that is not the default one, and calls in a captured graph."""

from __future__ import annotations

import math
import time

import torch

from custom_pypto_testing.case import Case
from custom_pypto_testing.checks.values import compare_mutated, compare_returned
from custom_pypto_testing.subject import Op

from .calls import Note, can_be_overwritten, changed, make_calls
from .finding import Finding

_BUSY_ELEMENTS = 2**24
_BUSY_SECONDS = 0.02
"""A stream that is busy for so long is still busy when the host has launched what follows."""


def check_streams(op: Op, most: int, note: Note) -> Finding:
    """A call on another stream runs after what that stream still computes: its arguments."""
    device = torch.get_device_module(op.device)
    stream = device.Stream()
    busy = torch.zeros(_BUSY_ELEMENTS, device=op.device)
    rounds = _count_rounds(busy)
    waited: list[str] = []

    def check(case: Case) -> None:
        # The first call looks kernels up, which may take longer than the stream is busy.
        case.call().run()
        final, call = case.call(), case.call()
        given = call.tensors if can_be_overwritten(call) else {}
        late = {name: tensor for name, tensor in given.items() if tensor.is_floating_point()}
        for tensor in late.values():
            tensor.zero_()
        device.synchronize()
        with device.stream(stream):
            for _ in range(rounds):
                busy.add_(1)
            for name, tensor in late.items():
                tensor.copy_(final.tensors[name])
            returned = call.run()
            if stream.query():
                waited.append(case.sample.name)
        stream.synchronize()
        compare_returned(case, returned, case.expected.returned)
        compare_mutated(case, call.mutable, case.expected.mutated)

    calls = make_calls(op, most, note, check)
    return Finding(calls.text, numbers={"host_waited": waited, "refused": calls.refused})


def _count_rounds(busy: torch.Tensor) -> int:
    """Return how often `busy` must be added to, so that its device is busy for long enough."""
    device = torch.get_device_module(busy.device.type)
    busy.add_(1)
    device.synchronize()
    start = time.perf_counter()
    busy.add_(1)
    device.synchronize()
    return math.ceil(_BUSY_SECONDS / (time.perf_counter() - start))


def check_capture(op: Op, most: int, note: Note) -> Finding:
    """A captured graph gives the results of what its arguments hold when it is replayed."""
    npu = torch.get_device_module(op.device)

    def check(case: Case) -> None:
        call = case.call()
        # Looks kernels up, and fills caches: none of that may be captured.
        call.run()
        npu.synchronize()
        graph = npu.NPUGraph()
        with npu.graph(graph):
            returned = call.run()
        for other in (changed(case), case):
            for name, tensor in other.call().tensors.items():
                call.tensors[name].copy_(tensor)
            graph.replay()
            npu.synchronize()
            compare_returned(other, returned, other.expected.returned)
            compare_mutated(other, call.mutable, other.expected.mutated)

    calls = make_calls(op, most, note, check, wanted=can_be_overwritten)
    return Finding(calls.text, numbers={"refused": calls.refused})
