"""The checks that custom-pypto verify makes of an op, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing.case import Case
from custom_pypto_testing.subject import Op
from custom_pypto_testing.verification import launch, results, timing
from custom_pypto_testing.verification.calls import changed, make_calls
from faulty_ops import ACCUMULATE, PLUS, TWICE, accumulate, like, registered, twice, vector
from torch import Tensor

Check = Callable[..., Any]


def op_of(overload: Any, reference: Callable[..., Any], *samples: tuple[Tensor, ...]) -> Op:
    """An op with samples called s0, s1, ..."""
    made = Reference(reference)
    cases = [
        Case(overload, SampleInput(sample, name=f"s{number}"), made)
        for number, sample in enumerate(samples)
    ]
    return Op(cases[0].name if cases else "twice", overload, made, tuple(cases))


def ignore(text: str) -> None:
    """Note nothing."""


def refuse_large(x: Tensor) -> Tensor:
    """Refuse what has more than 4 elements, as an op does."""
    if x.numel() > 4:
        raise RuntimeError(f"twice: argument 'x' must have 4 elements, got {x.numel()}\nmore")
    return twice(x)


def test_results_say_how_far_they_are_off() -> None:
    def kernel(x: Tensor) -> Tensor:
        return x * 2.0000001

    with registered(TWICE, kernel, fake=like) as op:
        found = results.check_results(op_of(op, twice, (vector(6),)), 8, ignore)
    assert found.problem == ""
    assert found.numbers["difference"]["s0"] == pytest.approx(5e-8)
    assert found.text == "1 call, at most 5e-08 off"


def test_results_that_are_wrong_are_named_and_the_others_compared_all_the_same() -> None:
    def kernel(x: Tensor) -> Tensor:
        return x * (2 if x.dim() == 1 else 3)

    with registered(TWICE, kernel, fake=like) as op:
        samples = ((vector(6),), (vector(6).view(2, 3),), (vector(8).view(2, 2, 2),))
        found = results.check_results(op_of(op, twice, *samples), 8, ignore)
    first, second, third = found.problem.splitlines()
    assert first == "2 of 3 calls are wrong:"
    assert second.startswith("s1: output: 6 of 6 elements are wrong; ")
    assert third.startswith("s2: output: 8 of 8 elements are wrong; ")
    assert found.numbers["difference"].keys() == {"s0", "s1", "s2"}


def test_a_call_at_other_addresses_that_is_wrong_is_found() -> None:
    kept: list[Tensor] = []

    def kernel(x: Tensor) -> Tensor:
        kept.append(x.clone())
        return twice(kept[0])

    with registered(TWICE, kernel, fake=like) as op:
        found = results.check_repeats(op_of(op, twice, (vector(6),)), 8, ignore)
    assert "s0, called again: output: 6 of 6 elements are wrong" in found.problem


def test_calls_that_the_op_refuses_are_set_aside() -> None:
    with registered(TWICE, refuse_large, fake=like) as op:
        samples = ((vector(6),), (vector(3),))
        found = results.check_results(op_of(op, twice, *samples), 8, ignore)
    assert found.text == "1 call; 1 refused, at most 0 off"
    refused = found.numbers["refused"]
    assert refused == {"s0": "twice: argument 'x' must have 4 elements, got 6"}


def test_an_op_that_refuses_every_call_fails() -> None:
    text = "twice refuses each of 1 calls:\ntwice: argument 'x' must have 4 elements, got 6"
    with registered(TWICE, refuse_large, fake=like) as op, pytest.raises(AssertionError) as error:
        launch.check_launch(op_of(op, twice, (vector(6),)), 8, ignore)
    assert str(error.value) == text


def test_an_op_without_a_call_fails() -> None:
    with registered(TWICE, twice, fake=like) as op, pytest.raises(AssertionError, match="no sampl"):
        launch.check_launch(op_of(op, twice), 8, ignore)


def test_another_error_of_a_call_is_no_refusal() -> None:
    def kernel(x: Tensor) -> Tensor:
        raise RuntimeError("aclnnTwice: phase 1 failed")

    with registered(TWICE, kernel, fake=like) as op, pytest.raises(RuntimeError, match="phase 1"):
        launch.check_launch(op_of(op, twice, (vector(6),)), 8, ignore)


def test_a_launch_is_a_call_with_elements() -> None:
    noted: list[str] = []
    with registered(TWICE, twice, fake=like) as op:
        samples = ((vector(0),), (vector(6),))
        found = launch.check_launch(op_of(op, twice, *samples), 8, noted.append)
    assert found.text == "s1: twice(x=float64[6])"
    assert noted == [found.text]


def test_no_more_calls_are_made_than_asked_for() -> None:
    made: list[Case] = []
    with registered(TWICE, twice, fake=like) as op:
        samples = [(vector(size),) for size in range(2, 7)]
        make_calls(op_of(op, twice, *samples), 3, ignore, made.append)
    assert len(made) == 3


def test_changed_values_leave_integers_as_they_are() -> None:
    with registered(PLUS, torch.add) as op:
        x, y = vector(6), torch.arange(6)
        [case] = op_of(op, torch.add, (x, y)).cases
        other = changed(case).call()
    assert other.tensors["x"].equal(x.roll(1))
    assert other.tensors["y"].equal(y)


def test_each_timed_call_finds_what_the_op_writes_to_as_it_was() -> None:
    seen: list[Tensor] = []

    def kernel(x: Tensor, total: Tensor) -> None:
        seen.append(total.clone())
        accumulate(x, total)

    with registered(ACCUMULATE, kernel) as op:
        start = vector(6, seed=1)
        found = timing.check_timing(op_of(op, accumulate, (vector(6), start)), 8, ignore)
    assert len(seen) > 2
    assert all(each.equal(start) for each in seen)
    assert found.numbers["host_us"] > 0
    assert found.numbers["add_elements"] == 6
