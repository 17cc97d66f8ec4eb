"""Runs checks of the suite on the calls of one op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import torch
from custom_pypto_contract.dispatch_keys import COMPOSED, CPU, EVERY_DEVICE, NPU
from custom_pypto_plugin import Reference

from custom_pypto_testing import checks
from custom_pypto_testing.case import Case, describe_arguments, one_of_each_graph
from custom_pypto_testing.checks.contract import drawn_cases
from custom_pypto_testing.checks.on_device import NotCheckedError
from custom_pypto_testing.ops_under_test import Op, op_of_plugin
from custom_pypto_testing.sample_generator import DrawingError

from .report import Verdict

_KEYS = {"npu": NPU, "cpu": CPU}

Note = Callable[[str], None]
"""Gets the name of the next call, which may crash the process."""


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


def find_check(name: str) -> Callable[[Case], None]:
    """Return the function ``check_<name>`` of this module, else of the suite."""
    found: Callable[[Case], None] = globals().get(f"check_{name}") or vars(checks)[f"check_{name}"]
    return found


def run_check(name: str, op: Op, most: int, note: Note) -> tuple[Verdict, str]:
    """Return the verdict of a check of at most `most` calls, and what was done or is wrong.

    Raises:
        RuntimeError: a call failed, by another error than one about an argument.
    """
    if not _has_kernel(op, op.device):
        return Verdict.NONE, f"the op has no kernel for {op.device}"
    check = find_check(name)
    if op.reference is None and check is not check_launch:
        return Verdict.NONE, "the op has neither a reference nor a kernel for the CPU"
    return _check_calls(check, op, 1 if check is check_launch else most, note)


def find_op(name: str, device: str) -> Op:
    """Return an op; without a reference, its own kernel on the CPU is the reference."""
    op = op_of_plugin(name, device)
    if op.reference is None and _has_kernel(op, "cpu"):
        return replace(op, reference=Reference(op.overload))
    return op


def _check_calls(
    check: Callable[[Case], None], op: Op, most: int, note: Note
) -> tuple[Verdict, str]:
    """Have `check` check at most `most` calls; those that the op refuses do not count."""
    wrong: list[str] = []
    refused: list[str] = []
    lacks, count = "", 0
    for case in _calls_of(op):
        if count == most:
            break
        name = case.sample.name
        note(f"{name}: {case.name}({describe_arguments(case.arguments)})")
        try:
            check(case)
        except NotCheckedError as error:
            lacks = str(error)
            continue
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
        except RuntimeError as error:
            # The op's own error about an argument; a compiler may quote it.
            _, own, text = str(error).partition(f"{case.name}: argument '")
            if not own:
                raise
            refused.append(f"{name}: {own}{text.partition(chr(10))[0]}")
            continue
        count += 1
    if wrong:
        return Verdict.FAILED, "\n".join([f"{len(wrong)} of {count} calls are wrong:", *wrong])
    if count:
        text = f"{count} call{'s' if count > 1 else ''}"
        text += f", {len(refused)} refused" if refused else ""
        return Verdict.PASSED, "\n".join([text, *refused])
    if refused:
        text = f"{op.name} refuses each of {len(refused)} calls:"
        return Verdict.FAILED, "\n".join([text, *refused])
    if lacks:
        return Verdict.NONE, lacks
    return Verdict.FAILED, f"{op.name} has no sample on {op.device}, and none can be drawn"


def _has_kernel(op: Op, device: str) -> bool:
    return any(map(op.has_kernel_for, (_KEYS[device], COMPOSED, EVERY_DEVICE)))


def _calls_of(op: Op) -> Iterator[Case]:
    """Yield the samples, one of each form first, those without elements last; then drawn calls."""
    cases = dict.fromkeys([*one_of_each_graph(op.cases), *op.cases])
    yield from sorted(cases, key=lambda case: 0 in map(torch.numel, case.tensors.values()))
    # Few contracts allow so little that none can be drawn.
    with suppress(DrawingError):
        yield from drawn_cases(op)
