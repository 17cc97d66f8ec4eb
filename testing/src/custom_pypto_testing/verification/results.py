"""The results of calls, compared with those of the reference on the CPU."""

from __future__ import annotations

from typing import Any

import torch

from custom_pypto_testing import checks
from custom_pypto_testing.call import tensor_outputs
from custom_pypto_testing.case import Case
from custom_pypto_testing.subject import Op

from .calls import Calls, Note, changed, make_calls
from .finding import Finding

CHECKS = (
    checks.check_values,
    checks.check_mutated,
    checks.check_unchanged,
    checks.check_versions,
    checks.check_aliasing,
    checks.check_fake,
)
"""What holds of the results of every call."""
_CALLS_OF_MEMORY = 20


def check_results(op: Op, most: int, note: Note) -> Finding:
    """Results, written arguments, other arguments, versions, memory and fake of each call."""
    differences: dict[str, float] = {}
    wrong: list[str] = []

    def check(case: Case) -> None:
        differences[case.sample.name] = _difference(case)
        try:
            for each in CHECKS:
                each(case)
        except AssertionError as error:
            wrong.append(f"{case.sample.name}: {error}")

    calls = make_calls(op, most, note, check)
    text = f"{calls.text}, at most {max(differences.values()):.2g} off"
    return _finding(calls, wrong, {"difference": differences}, text)


def check_repeats(op: Op, most: int, note: Note) -> Finding:
    """Each call twice more at other addresses, with other values; and no memory is kept.

    CANN's cache may have the launch from the first call on.
    """
    device = torch.get_device_module(op.device)
    wrong: list[str] = []

    def check(case: Case) -> None:
        # Alive meanwhile, so that no tensor of another call has its address.
        first = case.call()
        kept = [first, first.run()]
        try:
            for each in (changed(case), case):
                checks.check_values(each)
                checks.check_mutated(each)
        except AssertionError as error:
            wrong.append(f"{case.sample.name}, called again: {error}")
        kept.clear()
        if op.device == "cpu":
            return
        sizes = []
        for _ in range(2):
            for _ in range(_CALLS_OF_MEMORY):
                case.call().run()
            device.synchronize()
            sizes.append(device.memory_allocated())
        if sizes[1] > sizes[0]:
            wrong.append(
                f"{case.sample.name}: {_CALLS_OF_MEMORY} calls keep {sizes[1] - sizes[0]} bytes"
            )

    calls = make_calls(op, most, note, check)
    return _finding(calls, wrong, {}, calls.text)


def _finding(calls: Calls, wrong: list[str], numbers: dict[str, Any], text: str) -> Finding:
    made = len(calls.made)
    problem = f"{len(wrong)} of {made} calls are wrong:\n" + "\n".join(wrong) if wrong else ""
    return Finding(text, problem, {**numbers, "refused": calls.refused})


def _difference(case: Case) -> float:
    """Return how far the call's results are from the reference's, at most.

    Floating-point results: the largest difference, by the largest magnitude. Others: the share of
    elements that differ.
    """
    expected = tensor_outputs(case.expected.returned)
    found = [0.0]
    for name, tensor in tensor_outputs(case.call().run()).items():
        one, other = tensor.cpu().double(), expected[name].double()
        if one.shape != other.shape or not one.numel():
            continue
        if not tensor.is_floating_point():
            found.append(float(one.ne(other).double().mean()))
            continue
        finite = one.isfinite() & other.isfinite()
        gap = (one - other).abs()[finite]
        size = other.abs()[finite]
        if gap.numel() and float(size.max()):
            found.append(float(gap.max() / size.max()))
    return max(found)
