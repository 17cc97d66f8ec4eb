"""The checks that custom-pypto verify makes of the calls of an op, on the CPU."""

from typing import Any

import pytest
import torch
from custom_pypto_testing.checks.on_device import with_other_values
from custom_pypto_testing.ops_under_test import Op
from custom_pypto_testing.verification.op_checks import run_check
from custom_pypto_testing.verification.report import Verdict
from faulty_ops import TWICE, case, like, op_of, registered, twice, vector
from torch import Tensor

SMALL, LARGE, MATRIX = (vector(3),), (vector(6),), (vector(6).view(2, 3),)
REFUSAL = "twice: argument 'x' must have 4 elements, got 6"
Found = tuple[Verdict, str]


def refuse_large(x: Tensor) -> Tensor:
    """Refuse what has more than 4 elements, as an op does."""
    if x.numel() > 4:
        raise RuntimeError(f"{REFUSAL}\nmore")
    return twice(x)


def of_the_first_call(x: Tensor) -> Tensor:
    """What the first call gave, for as long as its argument is alive."""
    return twice(FIRST.setdefault(x.numel(), x.clone()))


FIRST: dict[int, Tensor] = {}


def run(check: str, op: Op, most: int = 8) -> tuple[Found, list[str]]:
    """Run a check; return what it found, and the calls that it noted."""
    noted: list[str] = []
    return run_check(check, op, most, noted.append), noted


@pytest.mark.parametrize(
    ("check", "kernel", "samples", "verdict", "text"),
    [
        ("results", twice, (SMALL, LARGE), Verdict.PASSED, "2 calls"),
        ("repeats", twice, (SMALL,), Verdict.PASSED, "1 call"),
        ("repeats", of_the_first_call, (LARGE,), Verdict.FAILED, "1 of 1 calls are wrong:\ns0: "),
        (
            "results",
            lambda x: x * (2 if x.dim() == 1 else 3),
            (SMALL, MATRIX, LARGE),
            Verdict.FAILED,
            "1 of 3 calls are wrong:\ns1: output: 6 of 6 elements are wrong; ",
        ),
        ("results", lambda x: x.mul_(2) + 0, (SMALL,), Verdict.FAILED, "argument 'x' was written"),
        ("results", refuse_large, (LARGE, SMALL), Verdict.PASSED, f"1 refused\ns0: {REFUSAL}"),
        ("launch", refuse_large, (LARGE,), Verdict.FAILED, f"each of 1 calls:\ns0: {REFUSAL}"),
        ("launch", twice, (), Verdict.FAILED, "twice has no sample on cpu, and none can be drawn"),
    ],
)  # fmt: skip
def test_verdict(check: str, kernel: Any, samples: Any, verdict: Verdict, text: str) -> None:
    with registered(TWICE, kernel, fake=like) as op:
        found, _ = run(check, op_of(op, *samples, reference=twice))
    assert found[0] is verdict
    assert text in found[1]


def test_another_error_of_a_call_is_no_refusal() -> None:
    def kernel(x: Tensor) -> Tensor:
        raise RuntimeError("aclnnTwice: phase 1 failed")

    with registered(TWICE, kernel, fake=like) as op, pytest.raises(RuntimeError, match="phase 1"):
        run("launch", op_of(op, SMALL, reference=twice))


def test_a_launch_is_one_call_with_elements() -> None:
    with registered(TWICE, twice, fake=like) as op:
        found, noted = run("launch", op_of(op, (vector(0),), LARGE, SMALL))
    assert found == (Verdict.PASSED, "1 call")
    assert noted == ["s1: twice(x=float64[6])"]


def test_no_more_calls_are_made_than_asked_for() -> None:
    with registered(TWICE, twice, fake=like) as op:
        samples = [(vector(size),) for size in range(2, 7)]
        _, noted = run("results", op_of(op, *samples, reference=twice), 3)
    assert len(noted) == 3


@pytest.mark.parametrize("key", ["CPU", "AutogradCPU"])
def test_what_an_op_lacks_does_not_apply(key: str) -> None:
    library = torch.library.Library("custom_pypto_testing_ops", "FRAGMENT")
    library.define(TWICE)
    library.impl("twice", twice, key)
    op = op_of(torch.ops.custom_pypto_testing_ops.twice.default, SMALL)
    (verdict, text), noted = run("results", op)
    library._destroy()
    assert (verdict, noted) == (Verdict.NONE, [])
    lacking = "neither a reference nor a kernel" if key == "CPU" else "no kernel for cpu"
    assert lacking in text


def test_changed_values_leave_integers_as_they_are() -> None:
    with registered("plus(Tensor x, Tensor y) -> Tensor", torch.add) as op:
        x, y = vector(6), torch.arange(6)
        other = with_other_values(case(op, x, y))
    assert other.tensors["x"].equal(x.roll(1))
    assert other.tensors["y"].equal(y)
