"""Results against the reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_close, assert_same_bits, assert_tensors_close
from custom_pypto_testing.outputs import outputs, tensor_outputs

from .side_effects import named_arguments

if TYPE_CHECKING:
    from custom_pypto_plugin import SampleInput


@dataclass(frozen=True)
class Run:
    """What a call returned, and the arguments that it mutated."""

    returned: Any
    mutated: Mapping[str, torch.Tensor]

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """Both, by the names that messages give them."""
        return tensor_outputs(self.returned) | named_arguments(self.mutated)

    def equals(self, other: Run) -> bool:
        """Whether both have tensors alone, and equal ones."""
        one, two = self.tensors, other.tensors
        names = {*outputs(self.returned), *named_arguments(self.mutated)}
        return {*one} == {*two} == names and all(
            each.dtype is two[name].dtype and each.equal(two[name]) for name, each in one.items()
        )


def run_of(call: Case, run: Callable[[Case], Any] = Case.run) -> Run:
    """Run a call, by the op itself or another function; a random op draws the same numbers."""
    call.seed()
    return Run(run(call), call.mutable)


def compare_runs(case: Case, actual: Run, expected: Run, when: str) -> None:
    """Two runs of the op give equal bits; `when` says in messages what differs between them.

    Where those of a random op differ, its reference's own comparison judges, if there is one.
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
            if not case.has_own_comparison:
                raise
            compare_with_reference(case, actual)
            return


def compare_with_reference(case: Case, run: Run) -> None:
    """A run of the case returned and wrote what the reference does."""
    compare_returned(case, run.returned, case.expected.returned)
    compare_mutated(case, run.mutated, case.expected.mutated)


def check_values(case: Case) -> None:
    """The op returns what the reference returns."""
    compare_returned(case, case.copy().run(), case.expected.returned)


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
    if compare is None:
        assert_close(_on_cpu(actual), _on_cpu(expected))
    else:
        compare(_on_cpu(actual), _on_cpu(expected), _sample_on_cpu(case))


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
    if case.is_on_cpu:
        return case.sample
    return case.copy_to_cpu().sample


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, list | tuple):
        return type(value)(_on_cpu(each) for each in value)
    return value
