"""Calls on a device again, on its streams, in captured graphs and in graphs of torchair."""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any, NoReturn

import torch
from custom_pypto.core import hooks
from custom_pypto.core.loader import start

from custom_pypto_testing.case import Case
from custom_pypto_testing.outputs import Run

from .compilation import compile_op
from .values import compare_with_reference, run_of

_CALLS_OF_MEMORY = 20
_BUSY_ELEMENTS = 2**24
_BUSY_SECONDS = 0.02
"""A stream is kept busy for so long that the host launches the next calls meanwhile."""
_EX = "npugraph_ex"


class NotCheckedError(Exception):
    """The op, its call or the machine lacks what a check needs; the text names it."""


def with_other_values(case: Case) -> Case:
    """Return the case with other values in its floating-point tensors.

    Integers stay: they may be lengths and indices, and must fit one another.
    """

    def change(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor.cpu().flatten().roll(1).view(tensor.shape).to(tensor.device)

    return case.copy().map(change)


def check_repeats(case: Case) -> None:
    """Calls at other addresses with other values are right; 20 calls keep no memory of a device."""
    # Alive meanwhile, so that no tensor of another call has its address. CANN's cache may have the
    # launch from the first call on.
    first = case.copy()
    kept = [first, first.run()]
    for each in (with_other_values(case), case):
        compare_with_reference(each, run_of(each.copy()))
    kept.clear()
    if case.op.device == "cpu":
        return
    device = torch.get_device_module(case.op.device)
    sizes = []
    for _ in range(2):
        for _ in range(_CALLS_OF_MEMORY):
            case.copy().run()
        device.synchronize()
        sizes.append(device.memory_allocated())
    if sizes[1] > sizes[0]:
        raise AssertionError(
            f"{case.name}: {_CALLS_OF_MEMORY} calls keep {sizes[1] - sizes[0]} bytes of memory"
        )


def check_streams(case: Case) -> None:
    """A call on another stream waits until that stream has computed the arguments."""
    device = torch.get_device_module(case.op.device)
    stream = device.Stream()
    # The first call looks kernels up, which may take longer than the stream is busy.
    case.copy().run()
    final, call = case.copy(), case.copy()
    late = call.tensors if _can_be_overwritten(call) else {}
    late = {name: tensor for name, tensor in late.items() if tensor.is_floating_point()}
    for tensor in late.values():
        tensor.zero_()
    busy = torch.zeros(_BUSY_ELEMENTS, device=case.op.device)
    rounds = _count_rounds(case.op.device)
    device.synchronize()
    with device.stream(stream):
        for _ in range(rounds):
            busy.add_(1)
        for name, tensor in late.items():
            tensor.copy_(final.tensors[name])
        returned = call.run()
    stream.synchronize()
    _compare(case, returned, call)


def check_capture(case: Case) -> None:
    """A captured graph gives the results of what its arguments hold when it is replayed."""
    npu = torch.get_device_module(case.op.device)
    call = case.copy()
    if not _can_be_overwritten(call):
        raise NotCheckedError("an argument has elements that share an address")
    # The first call looks kernels up and fills caches. A capture must not contain that.
    call.run()
    npu.synchronize()
    graph = npu.NPUGraph()
    with npu.graph(graph):
        returned = call.run()
    for other in (with_other_values(case), case):
        for name, tensor in other.copy().tensors.items():
            call.tensors[name].copy_(tensor)
        graph.replay()
        npu.synchronize()
        _compare(other, returned, call)


def check_npugraph_ex(case: Case) -> None:
    """The same in code compiled with npugraph_ex, which captures the op's own launches."""
    if _EX not in torch._dynamo.list_backends(exclude_tags=None):
        raise NotCheckedError(f"this torch_npu has no backend {_EX}")
    _check_compiled(case, _EX, dynamic=False)


def check_graph(case: Case) -> None:
    """torchair's graph engine gives the reference's results, with fixed sizes."""
    _check_compiled(case, _graph_engine(case), dynamic=False)


def check_symbolic_graph(case: Case) -> None:
    """The same with symbolic sizes, also at the sizes of `resized`."""
    _check_compiled(case, _graph_engine(case), dynamic=True)


def _graph_engine(case: Case) -> Any:
    contract = case.op.contract
    if contract is None or not contract.npu.graph:
        converter = start().find_owner(case.name).contribution(hooks.CONVERTERS).get(case.name)
        if converter is None:
            raise NotCheckedError("ops.toml has no graph line for it, and its plugin no converter")
        if converter.__annotations__.get("return") in (NoReturn, "NoReturn"):
            raise NotCheckedError("its converter refuses every call")
    import torchair

    return torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())


def _check_compiled(case: Case, backend: Any, *, dynamic: bool) -> None:
    compiled = compile_op(case, backend, dynamic=dynamic)
    cases = [case, with_other_values(case)]
    if dynamic and case.sample.resized is not None:
        cases.append(case.resized)
    # Keep all calls: torchair does not notice a new argument at an earlier one's address.
    calls = [each.copy() for each in cases]
    for each, call in zip(cases, calls, strict=True):
        call.seed()
        _compare(each, compiled(*call.args, **call.kwargs), call)


def _compare(case: Case, returned: Any, call: Case) -> None:
    compare_with_reference(case, Run(returned, call.mutable))


def _can_be_overwritten(call: Case) -> bool:
    """Whether every tensor of the call has each element at an address of its own."""
    return not any(
        stride == 0 and size > 1
        for tensor in call.tensors.values()
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )


@cache
def _count_rounds(name: str) -> int:
    """Return how often 1 must be added to many elements to keep a device busy for long enough."""
    device = torch.get_device_module(name)
    busy = torch.zeros(_BUSY_ELEMENTS, device=name)
    busy.add_(1)
    device.synchronize()
    began = time.perf_counter()
    busy.add_(1)
    device.synchronize()
    return math.ceil(_BUSY_SECONDS / (time.perf_counter() - began))
