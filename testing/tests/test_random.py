"""The conformance suite on ops that are random by design."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest
import torch
from custom_pypto.core.contracts.lazy import LazyContract
from custom_pypto.core.python_kernels import PythonKernels
from custom_pypto_contract import manifest
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing import checks
from custom_pypto_testing.case import Case
from faulty_ops import TWICE, case, like, registered
from manifests import contract_of
from torch import Tensor

RANDOM = (torch.Tag.nondeterministic_seeded,)
ROWS = torch.ones(64, 32)


def half(x: Tensor) -> Tensor:
    """X, or 0 with a probability of a half."""
    return x.contiguous() * torch.bernoulli(torch.full(x.shape, 0.5))


def half_of_its_own(x: Tensor) -> Tensor:
    """The same, of a generator that torch.manual_seed does not reach."""
    generator = torch.Generator().manual_seed(next(SEEDS))
    return x.contiguous() * torch.bernoulli(torch.full(x.shape, 0.5), generator=generator)


SEEDS = count()


def compare(actual: Tensor, expected: Tensor, sample: SampleInput) -> None:
    """Each element is x or 0; the shares are near the reference's shares."""
    shares = [float((each != 0).float().mean()) for each in (actual, expected)]
    assert abs(shares[0] - shares[1]) < 0.1, f"{shares[0]:.2f} of it are kept"


def reference(x: Tensor) -> Tensor:
    """Draw in another order than the kernel."""
    return x * (torch.rand(x.shape[::-1]).T < 0.5)


COMPARED = Reference(reference, compare)


def case_of(op: Any, judge: Reference | None = COMPARED) -> Case:
    return case(op, ROWS, resized=(torch.ones(48, 20),), reference=judge)


@pytest.fixture(params=[half, half_of_its_own])
def op(request: pytest.FixtureRequest) -> Iterator[Any]:
    with registered(TWICE, request.param, fake=like, tags=RANDOM) as op:
        yield op


COMPARING = [
    checks.check_values,
    checks.check_strides,
    checks.check_threads,
    partial(checks.check_compiled, backend="aot_eager"),
    checks.check_exported,
]


@pytest.mark.parametrize("check", [*COMPARING, checks.check_operator, checks.check_symbolic_fake])
def test_right_random_op_passes(check: Callable[[Case], None], op: Any) -> None:
    check(case_of(op))


@pytest.mark.parametrize("check", COMPARING)
def test_wrong_distribution_is_found(check: Callable[[Case], None]) -> None:
    def keep_more(x: Tensor) -> Tensor:
        # A call with other strides is compared with the plain one.
        share = 0.5 if check is checks.check_strides and x.is_contiguous() else 0.8
        generator = torch.Generator().manual_seed(next(SEEDS))
        return x.contiguous() * (torch.rand(x.shape, generator=generator) < share)

    with (
        registered(TWICE, keep_more, fake=like, tags=RANDOM) as op,
        pytest.raises(AssertionError, match="of it are kept"),
    ):
        check(case_of(op))


@pytest.mark.parametrize("check", COMPARING[2:])
def test_random_op_that_no_seed_repeats_needs_a_comparison(check: Callable[[Case], None]) -> None:
    with (
        registered(TWICE, half_of_its_own, fake=like, tags=RANDOM) as op,
        pytest.raises(AssertionError, match=r"of 2048 elements differ"),
    ):
        check(case_of(op, None))


def test_an_op_that_its_contract_calls_random_has_the_tag_of_torch() -> None:
    contract = contract_of(
        '[draw_of_a_test]\nschema = "draw_of_a_test(Tensor x) -> Tensor"\nrandom = true'
    )
    op = manifest.make_op(contract.data)
    assert LazyContract(op).op.random
    kernels = PythonKernels()
    try:
        kernels.define([op])
        assert RANDOM[0] in torch.ops.custom_pypto.draw_of_a_test.default.tags
    finally:
        kernels.remove()
