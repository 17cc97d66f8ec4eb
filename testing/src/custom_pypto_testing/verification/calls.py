"""The calls that the checks make of an op on its device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
from custom_pypto.core.call_text import describe_arguments

from custom_pypto_testing.call import Call
from custom_pypto_testing.case import Case, one_of_each_graph
from custom_pypto_testing.checks.contract import drawn_cases
from custom_pypto_testing.drawing import DrawingError
from custom_pypto_testing.subject import Op

Note = Callable[[str], None]
"""Is told which call comes next: it may be the last one of the process."""


@dataclass
class Calls:
    """The calls of one check."""

    made: list[Case] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    """The op's errors about arguments that this machine's kernel does not take, by call."""

    @property
    def text(self) -> str:
        """What was called, in one line."""
        text = f"{len(self.made)} call{'s' if len(self.made) != 1 else ''}"
        return f"{text}; {len(self.refused)} refused" if self.refused else text


def make_calls(
    op: Op,
    most: int,
    note: Note,
    make: Callable[[Case], object],
    *,
    wanted: Callable[[Call], bool] = lambda call: True,
) -> Calls:
    """Have `make` make calls of the op that are `wanted`, until it has made `most`.

    Calls that the op refuses because of an argument do not count.

    Raises:
        AssertionError: every call was refused, or there is none.
        Exception: what `make` raised.
    """
    calls = Calls()
    for case in _cases(op):
        if len(calls.made) == most:
            break
        if not wanted(case.call()):
            continue
        note(describe(case))
        try:
            make(case)
        except RuntimeError as error:
            text = _find_refusal(case, error)
            if not text:
                raise
            calls.refused[case.sample.name] = text
        else:
            calls.made.append(case)
    if not calls.made:
        reasons = "\n".join(dict.fromkeys(calls.refused.values()))
        raise AssertionError(
            f"{op.name} refuses each of {len(calls.refused)} calls:\n{reasons}"
            if reasons
            else f"{op.name} has no sample on {op.device}, and none can be drawn"
        )
    return calls


def describe(case: Case) -> str:
    """Return a call as text: its name, the op and the arguments."""
    return f"{case.sample.name}: {case.name}({describe_arguments(case.call().arguments)})"


def changed(case: Case) -> Case:
    """Return the case with other values in its floating-point tensors.

    Integers stay: they may be lengths and indices, and must fit one another.
    """

    def change(name: str, tensor: torch.Tensor) -> torch.Tensor:
        del name
        if not tensor.is_floating_point():
            return tensor
        rolled = tensor.cpu().flatten().roll(1).view(tensor.shape)
        return rolled.to(tensor.device)

    call = case.call().map(change)
    return replace(case, sample=replace(case.sample, args=call.args, kwargs=call.kwargs))


def can_be_overwritten(call: Call) -> bool:
    """Whether every tensor of the call has each element at an address of its own."""
    return not any(
        stride == 0 and size > 1
        for tensor in call.tensors.values()
        for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )


def _cases(op: Op) -> Iterator[Case]:
    """Yield the samples, one of each form first, those without elements last; then drawn calls."""
    first = one_of_each_graph(op.cases)
    names = {case.sample.name for case in first}
    others = [case for case in op.cases if case.sample.name not in names]
    yield from sorted([*first, *others], key=_is_empty)
    try:
        yield from drawn_cases(op)
    except DrawingError:
        # Few contracts allow so little. `make_calls` says so if there is no sample either.
        return


def _is_empty(case: Case) -> bool:
    return any(tensor.numel() == 0 for tensor in case.call().tensors.values())


def _find_refusal(case: Case, error: RuntimeError) -> str:
    """Return the op's own error about an argument, which a compiler may quote; else ''."""
    start = str(error).find(f"{case.name}: argument '")
    return "" if start < 0 else str(error)[start:].partition("\n")[0]
