"""Each check of the conformance suite passes right ops; test_faults.py has the others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing import Case, checks
from faulty_ops import (
    ACCUMULATE,
    NAMESPACE,
    PAIR,
    PLUS,
    TWICE,
    accumulate,
    case,
    expect_one_device,
    like,
    registered,
    setup_context,
    touching,
    twice,
    vector,
)
from torch import Tensor


@pytest.fixture
def right_twice() -> Iterator[Case]:
    with registered(TWICE, twice, fake=like, backward=lambda ctx, grad: grad * 2) as op:
        yield case(op, vector(6), resized=(vector(9),), reference=lambda x: x * 2)


@pytest.fixture
def right_accumulate() -> Iterator[Case]:
    def reference(x: Tensor, total: Tensor) -> None:
        total += x

    with registered(ACCUMULATE, accumulate, fake=expect_one_device) as op:
        yield case(
            op,
            vector(6),
            vector(6, seed=1),
            resized=(vector(9), vector(9, seed=1)),
            reference=reference,
        )


@pytest.fixture
def right_op_of_lists() -> Iterator[Case]:
    """Lists, keyword-only and missing tensors, an int, and an overload."""

    def kernel(
        parts: list[Tensor], count: int, *, offset: Tensor | None, other: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        assert offset is not None
        assert other is None
        return parts[0] * count + parts[1] + offset, [parts[1] + 0]

    def fake(
        parts: list[Tensor], count: int, *, offset: Tensor | None, other: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        assert offset is not None
        expect_one_device(*parts, offset)
        return like(parts[0]), [like(parts[1])]

    def sample(size: int, resized: SampleInput | None = None) -> SampleInput:
        parts = [vector(size), vector(size, seed=1)]
        kwargs = {"offset": vector(size, seed=2)}
        return SampleInput((parts, 3), kwargs, "sample", resized)

    schema = (
        "mix.lists(Tensor[] parts, int count, *, Tensor? offset, Tensor? other=None)"
        " -> (Tensor, Tensor[])"
    )
    with registered(schema, kernel, fake=fake) as op:
        yield Case(op, sample(6, sample(9)), Reference(kernel))


def test_floats_make_another_graph_at_special_values_only() -> None:
    with registered("scaled(Tensor x, float by) -> Tensor", lambda x, by: x * by) as op:
        numbers = (2.0, 3.5, -1.0, -7.0, 0.0, 1.0, float("inf"))
        keys = [case(op, vector(6), number).graph_key for number in numbers]
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert len(set(keys)) == 5


CHECKS_OF_ANY_OP = [
    checks.check_values,
    checks.check_mutated,
    checks.check_unchanged,
    checks.check_versions,
    checks.check_aliasing,
    checks.check_operator,
    checks.check_fake,
    checks.check_symbolic_fake,
    partial(checks.check_compiled, backend="aot_eager"),
    partial(checks.check_compiled, backend="inductor"),
    checks.check_exported,
    checks.check_threads,
    checks.check_strides,
    checks.check_devices,
]


@pytest.mark.parametrize("op", ["right_twice", "right_accumulate", "right_op_of_lists"])
@pytest.mark.parametrize("check", CHECKS_OF_ANY_OP)
def test_right_op_passes(check: Any, op: str, request: pytest.FixtureRequest) -> None:
    check(request.getfixturevalue(op))


def test_op_with_an_overload_is_named_with_it(right_op_of_lists: Case) -> None:
    assert right_op_of_lists.id == "mix.lists-sample"


def test_right_gradients_pass(right_twice: Case) -> None:
    checks.check_gradients(right_twice)
    checks.check_second_gradients(right_twice)


class Turned(torch.autograd.Function):
    """The derivative of `turned`; its table has none."""

    @staticmethod
    def forward(ctx: Any, op: Any, x: Tensor, table: Tensor) -> Tensor:
        assert not table.requires_grad
        ctx.table = table
        with torch._C._AutoDispatchBelowAutograd():
            result: Tensor = op(x, table=table)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, grad * ctx.table, None


def test_keyword_only_tensors_get_no_gradient_and_may_have_another_dtype() -> None:
    schema = "turned(Tensor x, *, Tensor table) -> Tensor"
    with registered(schema, lambda x, *, table: x * table) as op:
        library = torch.library.Library(NAMESPACE, "IMPL")
        library.impl("turned", lambda x, *, table: Turned.apply(op, x, table), "AutogradCPU")
        table = vector(6, seed=1, dtype=torch.float32)
        made = Case(op, SampleInput((vector(6),), {"table": table}, "s"))
        assert made.is_float64
        checks.check_gradients(made)
        checks.check_second_gradients(made)
        library._destroy()


def test_comparison_of_the_reference_is_used(right_twice: Case) -> None:
    def compare(actual: Tensor, expected: Tensor, sample: SampleInput) -> None:
        raise AssertionError(f"{sample.name}: {actual.shape} {expected.shape}")

    reference = Reference(lambda x: x * 2, compare)
    with pytest.raises(AssertionError, match=r"sample: torch.Size\(\[6\]\) torch.Size\(\[6\]\)"):
        checks.check_values(Case(right_twice.op, right_twice.sample, reference))


def test_comparison_of_mutated_arguments_is_used(right_accumulate: Case) -> None:
    def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
        raise AssertionError(f"{sample.name}: {list(actual)} {list(expected)}")

    reference = Reference(lambda x, total: None, compare_mutated=compare)
    with pytest.raises(AssertionError, match=r"sample: \['total'\] \['total'\]"):
        checks.check_mutated(Case(right_accumulate.op, right_accumulate.sample, reference))


@pytest.mark.parametrize("is_traceable", [True, False])
def test_opcheck_runs_with_gradients_of_a_second_result(is_traceable: bool) -> None:
    def pair(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.argsort(), x * 2

    def backward(ctx: Any, _positions: Tensor, grad: Tensor) -> Tensor:
        return grad * 2 if is_traceable else torch.from_numpy(grad.numpy() * 2)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[0])

    def fake(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.empty_like(x, dtype=torch.int64), torch.empty_like(x)

    with registered(PAIR, pair, fake=fake, backward=backward, setup_context=setup_context) as op:
        if is_traceable:
            checks.check_operator(case(op, vector(6)))
            return
        with pytest.raises(AssertionError, match=r"(?s)that require grad.*aot_dispatch_dynamic"):
            checks.check_operator(case(op, vector(6)))


def test_what_opcheck_makes_torch_warn_of_itself_is_no_failure(
    right_twice: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch 2.15 does."""
    opcheck, touch = torch.library.opcheck, touching("torch.testing._internal.optests")

    def touching_opcheck(*args: Any, **kwargs: Any) -> Any:
        touch()
        return opcheck(*args, **kwargs)

    monkeypatch.setattr(torch.library, "opcheck", touching_opcheck)
    checks.check_operator(right_twice)


def test_check_leaves_the_sample_as_it_was(right_accumulate: Case) -> None:
    before = right_accumulate.sample.args[1].clone()
    checks.check_mutated(right_accumulate)
    assert right_accumulate.sample.args[1].equal(before)


def test_op_may_require_contiguous_arguments() -> None:
    def kernel(x: Tensor) -> Tensor:
        if not x.is_contiguous():
            raise RuntimeError("twice: argument 'x' must be contiguous, got strides [2]")
        return x * 2

    with registered(TWICE, kernel, fake=like) as op:
        checks.check_strides(case(op, vector(6)))


def test_result_on_meta_is_accepted() -> None:
    with registered(PLUS, lambda x, y: x + y, fake=lambda x, y: like(x).to("meta")) as op:
        checks.check_devices(case(op, vector(6), vector(6, seed=1)))


def test_right_first_gradient_passes_where_the_second_is_wrong() -> None:
    with registered(
        TWICE,
        lambda x: x.contiguous() ** 2,
        fake=like,
        backward=lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].detach(),
        setup_context=setup_context,
    ) as op:
        checks.check_gradients(case(op, vector(6)))
