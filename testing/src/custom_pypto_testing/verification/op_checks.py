"""Runs checks of the suite on the calls of one op."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from statistics import median

import torch
from custom_pypto.core.call_text import describe_arguments
from custom_pypto_plugin import Reference

from custom_pypto_testing import checks
from custom_pypto_testing.case import Case, one_of_each_graph
from custom_pypto_testing.checks.contract import drawn_cases
from custom_pypto_testing.checks.on_device import NotCheckedError
from custom_pypto_testing.ops_under_test import Op, op_of_plugin
from custom_pypto_testing.sample_generator import DrawingError

from .report import Verdict

_KEYS = {"npu": "PrivateUse1", "cpu": "CPU"}
_COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")
_ROUNDS = 20
_CALLS_OF_A_ROUND = 10

Note = Callable[[str], None]
"""Is told which call comes next: it may be the last one of the process."""


def check_launch(case: Case) -> None:
    """One call returns, and the device goes on."""
    case.expect_tensors(case.copy().run(), "kernel")
    torch.get_device_module(case.op.device).synchronize()


def check_results(case: Case) -> None:
    """A call gives the reference's results, writes what its schema says, and has such a fake."""
    checks.check_values(case)
    checks.check_mutated(case)
    checks.check_unchanged(case)
    checks.check_versions(case)
    checks.check_aliasing(case)
    checks.check_fake(case)


def check_timing(case: Case) -> str:
    """Return how long a call takes, and torch.add of as many elements as its largest tensor has.

    The times are medians of rounds, and each round times both.
    """
    call, original = case.copy(), case.copy()
    elements = max((tensor.numel() for tensor in call.tensors.values()), default=1)
    number = torch.zeros(elements, device=case.op.device)
    timed: dict[str, Callable[[], object]] = {
        "the op": call.run,
        f"add of {elements}": partial(torch.add, number, number),
    }
    # An op that counts on what it writes to must not count further than its arguments allow.
    count = 1 if call.mutable else _CALLS_OF_A_ROUND
    wait = torch.get_device_module(case.op.device).synchronize
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in timed}
    for _ in range(_ROUNDS):
        for name, run in timed.items():
            for written, tensor in call.mutable.items():
                tensor.copy_(original.tensors[written])
            wait()
            start = time.perf_counter()
            for _ in range(count):
                run()
            launched = time.perf_counter()
            wait()
            times[name].append((launched - start, time.perf_counter() - start))
    texts = []
    for name, found in times.items():
        host, total = (1e6 * median(each) / count for each in zip(*found, strict=True))
        texts.append(f"{name}: {host:.1f} us on the host, {total:.1f} us to the end")
    return "; ".join(texts)


CHECKS: Mapping[str, Callable[[Case], str | None]] = {
    "launch": check_launch,
    "results": check_results,
    **{check.__name__.removeprefix("check_"): check for check in checks.OF_NPUS},
    "timing": check_timing,
}
_OF_ONE_CALL = ("launch", "timing")


def run_check(name: str, op: Op, most: int, note: Note) -> tuple[Verdict, str]:
    """Return the verdict of a check of at most `most` calls, and what was done or is wrong.

    Raises:
        RuntimeError: a call failed, by another error than one about an argument.
    """
    if not _has_kernel(op, op.device):
        return Verdict.NONE, f"the op has no kernel for {op.device}"
    if op.reference is None and name != "launch":
        return Verdict.NONE, "the op has neither a reference nor a kernel for the CPU"
    return check_calls(CHECKS[name], op, 1 if name in _OF_ONE_CALL else most, note)


def find_op(name: str, device: str) -> Op:
    """Return an op; without a reference, its own kernel on the CPU is the reference."""
    op = op_of_plugin(name, device)
    if op.reference is None and _has_kernel(op, "cpu"):
        return replace(op, reference=Reference(op.overload))
    return op


def check_calls(
    check: Callable[[Case], str | None], op: Op, most: int, note: Note
) -> tuple[Verdict, str]:
    """Have `check` check at most `most` calls; those that the op refuses do not count."""
    right: list[str] = []
    wrong: list[str] = []
    refused: list[str] = []
    lacks = ""
    for case in _calls_of(op):
        if len(right) + len(wrong) == most:
            break
        name = case.sample.name
        note(f"{name}: {case.name}({describe_arguments(case.arguments)})")
        try:
            right.append(check(case) or "")
        except NotCheckedError as error:
            lacks = str(error)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
        except RuntimeError as error:
            text = _find_refusal(case, error)
            if not text:
                raise
            refused.append(f"{name}: {text}")
    count = len(right) + len(wrong)
    if wrong:
        return Verdict.FAILED, "\n".join([f"{len(wrong)} of {count} calls are wrong:", *wrong])
    if right:
        parts = [f"{count} call{'s' if count > 1 else ''}", f"{len(refused)} refused", *right]
        if not refused:
            del parts[1]
        return Verdict.PASSED, "\n".join([", ".join(filter(None, parts)), *refused])
    if refused:
        text = f"{op.name} refuses each of {len(refused)} calls:"
        return Verdict.FAILED, "\n".join([text, *refused])
    if lacks:
        return Verdict.NONE, lacks
    return Verdict.FAILED, f"{op.name} has no sample on {op.device}, and none can be drawn"


def _has_kernel(op: Op, device: str) -> bool:
    return any(map(op.has_kernel_for, (_KEYS[device], *_COMPOSITE)))


def _calls_of(op: Op) -> Iterator[Case]:
    """Yield the samples, one of each form first, those without elements last; then drawn calls."""
    cases = dict.fromkeys([*one_of_each_graph(op.cases), *op.cases])
    yield from sorted(cases, key=_is_empty)
    # Few contracts allow so little that none can be drawn.
    with suppress(DrawingError):
        yield from drawn_cases(op)


def _is_empty(case: Case) -> bool:
    return any(tensor.numel() == 0 for tensor in case.tensors.values())


def _find_refusal(case: Case, error: RuntimeError) -> str:
    """Return the op's own error about an argument, which a compiler may quote; else ''."""
    start = str(error).find(f"{case.name}: argument '")
    return "" if start < 0 else str(error)[start:].partition("\n")[0]
