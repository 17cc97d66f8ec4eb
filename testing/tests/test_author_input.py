"""Authors must give a reference, a sample, a second size, and float64 for gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing import Subject, checks
from custom_pypto_testing.subject import Op
from faulty_ops import like, registered, twice, vector

TWICE = "twice(Tensor x) -> Tensor"


def op_with(overload: Any, *samples: SampleInput, reference: Reference | None = None) -> Op:
    given: dict[str, Callable[[str], Iterable[SampleInput]]] = {"twice": lambda device: samples}
    references = {} if reference is None else {"twice": reference}
    (op,) = Subject({"twice": overload}, given, references).ops_on("cpu")
    return op


def test_op_without_reference_fails_and_says_how_to_add_one() -> None:
    with (
        registered(TWICE, twice) as op,
        pytest.raises(
            AssertionError, match=r"twice has no reference: .* custom_pypto_references\(\)"
        ),
    ):
        checks.check_has_reference(op_with(op))


def test_op_with_reference_passes() -> None:
    with registered(TWICE, twice) as op:
        checks.check_has_reference(op_with(op, reference=Reference(twice)))


def test_op_without_samples_fails_and_says_how_to_add_some() -> None:
    with (
        registered(TWICE, twice) as op,
        pytest.raises(AssertionError, match=r"twice has no samples: .* custom_pypto_samples\(\)"),
    ):
        checks.check_has_samples(op_with(op))


def test_op_without_second_size_fails_and_says_how_to_add_one() -> None:
    with (
        registered(TWICE, twice) as op,
        pytest.raises(AssertionError, match=r"no sample at two sizes: .*resized=SampleInput\("),
    ):
        checks.check_has_samples(op_with(op, SampleInput((vector(6),))))


def test_op_without_tensor_arguments_needs_no_second_size() -> None:
    with registered("answer(int x) -> int", lambda x: x) as op:
        checks.check_has_samples(op_with(op, SampleInput((6,))))


def test_differentiable_op_without_float64_sample_fails_and_says_what_to_add() -> None:
    sample = SampleInput(
        (vector(6, dtype=torch.float32),), resized=SampleInput((vector(9, dtype=torch.float32),))
    )
    with (
        registered(TWICE, twice, fake=like, backward=lambda ctx, grad: grad * 2) as op,
        pytest.raises(
            AssertionError, match="differentiable but has no float64 sample: let its pos"
        ),
    ):
        checks.check_has_samples(op_with(op, sample))


def test_samples_without_a_name_are_numbered() -> None:
    with registered(TWICE, twice) as op:
        cases = op_with(op, SampleInput((vector(6),)), SampleInput((vector(9),))).cases
    assert [case.id for case in cases] == ["twice-0", "twice-1"]


def test_two_samples_of_one_name_are_refused() -> None:
    samples = [SampleInput((vector(size),), name="small") for size in (6, 9)]
    with (
        registered(TWICE, twice) as op,
        pytest.raises(AssertionError, match="twice: two samples are named 'small'; rename one"),
    ):
        op_with(op, *samples)
