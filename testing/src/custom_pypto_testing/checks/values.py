"""Results against the reference."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map_only

from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_close, assert_same_bits, assert_tensors_close
from custom_pypto_testing.outputs import Run

if TYPE_CHECKING:
    from custom_pypto_plugin import SampleInput

_M_PERTURB = -6  # of glibc's malloc.h


def run_of(call: Case, run: Callable[[Case], Any] = Case.run) -> Run:
    """Run a call, by the op itself or another function; a random op draws the same numbers."""
    call.seed()
    return Run(run(call), call.mutable)


def compare_runs(case: Case, actual: Run, expected: Run, when: str) -> None:
    """Two runs of the op give equal bits; `when` says in messages what differs between them.

    If the bits of a random op differ, its reference's own comparison decides, if there is one.
    """
    name, found, wanted = case.name, actual.tensors, expected.tensors
    if list(found) != list(wanted):
        raise AssertionError(f"{name} {when} returned {[*found]}, not {[*wanted]}")
    for result, tensor in found.items():
        other = wanted[result]
        if tensor.shape != other.shape or tensor.dtype != other.dtype:
            raise AssertionError(
                f"{name}: {result} is {tensor.dtype} {list(tensor.shape)} {when}, not"
                f" {other.dtype} {list(other.shape)}"
            )
        try:
            assert_same_bits(f"{name}: {result}", tensor, other, when)
        except AssertionError:
            judge = case.op.reference
            if not (case.op.is_random and judge and (judge.compare or judge.compare_mutated)):
                raise
            compare_with_reference(case, actual)
            return


def compare_with_reference(case: Case, run: Run) -> None:
    """A run of the case returned and wrote what the reference does."""
    compare_returned(case, run.returned, case.expected.returned)
    compare_mutated(case, run.mutated, case.expected.mutated)


def check_values(case: Case) -> None:
    """The op returns what the reference returns, whatever new memory holds."""
    call, expected = case.copy(), case.expected.returned
    with filled_memory():
        returned = call.run()
    compare_returned(case, returned, expected)


@contextmanager
def filled_memory() -> Iterator[None]:
    """Let glibc fill new memory with large numbers, so that no luck hides what is not written."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        yield
        return
    mallopt(_M_PERTURB, 0x80)  # glibc inverts it: 0x7F7F.. is about 1e38, or 127
    try:
        yield
    finally:
        mallopt(_M_PERTURB, 0)


def check_mutated(case: Case) -> None:
    """The arguments that the op mutates end up as the reference leaves its own."""
    call = case.copy()
    call.run()
    compare_mutated(case, call.mutable, case.expected.mutated)


def compare_returned(case: Case, actual: Any, expected: Any) -> None:
    """Compare two results of the op, by its reference's comparison or the default."""
    case.expect_tensors(actual, "kernel")
    reference = case.op.reference
    compare = None if reference is None else reference.compare
    actual, expected = tree_map_only(torch.Tensor, lambda each: each.cpu(), (actual, expected))
    if compare is None:
        assert_close(actual, expected)
    else:
        compare(actual, expected, _sample_on_cpu(case))


def compare_mutated(
    case: Case, actual: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]
) -> None:
    """Compare mutated arguments, by the reference's comparison for them or the default."""
    reference = case.op.reference
    compare = None if reference is None else reference.compare_mutated
    if compare is None:
        for name, tensor in actual.items():
            assert_tensors_close(f"argument '{name}'", tensor, expected[name])
    else:
        compare(
            {name: tensor.cpu() for name, tensor in actual.items()},
            {name: tensor.cpu() for name, tensor in expected.items()},
            _sample_on_cpu(case),
        )


def _sample_on_cpu(case: Case) -> SampleInput:
    return case.sample if case.is_on_cpu else case.copy_to_cpu().sample
