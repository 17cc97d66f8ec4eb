"""The suite's large calls: faults behind a grain are found, and a check of nothing says so."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from custom_pypto_plugin import Reference
from custom_pypto_testing import checks
from custom_pypto_testing.awake import run_watched
from custom_pypto_testing.subject import Op
from faulty_ops import case, registered
from manifests import contract_of
from test_contract import fake_of
from torch import Tensor

TWICE = """
[twice]
schema = "twice(Tensor x) -> Tensor"
tensors.x = { shape = "rows N", dtype = "float32" }
outputs.y = { like = "x" }
"""
GRAIN = 1024


def twice(x: Tensor) -> Tensor:
    """2 x, by torch's own threads if there is much to do."""
    return x * 2


def on_this_thread(x: Tensor) -> Tensor:
    """2 x, by the calling thread alone."""
    return torch.from_numpy(x.numpy() * 2)


def with_bug_in_second_chunk(x: Tensor) -> Tensor:
    """2 x; a second thread, which has work behind the grain only, begins one row too late."""
    rows, threads = len(x), torch.get_num_threads()
    y = on_this_thread(x)
    if rows > GRAIN and threads > 1:
        y[-(-rows // threads)] = 0
    return y


def with_bug_behind_the_grain(x: Tensor) -> Tensor:
    """2 x; with any number of threads, the row behind the grain is left out."""
    y = on_this_thread(x)
    y[GRAIN : GRAIN + 1] = 0
    return y


def check(kernel: Callable[[Tensor], Tensor], *samples: Tensor) -> list[str]:
    """Run the check; return what it says that it did not check."""
    notes: list[str] = []
    contract = contract_of(TWICE)
    with registered(contract.schema.text, kernel, fake=fake_of(contract)) as overload:
        cases = tuple(case(overload, each) for each in samples)
        op = Op("twice", overload, Reference(twice), cases, contract=contract)
        checks.check_large_calls(op, notes.append)
    return notes


def test_right_op_on_several_threads_passes_and_says_nothing() -> None:
    assert check(twice) == []


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (with_bug_in_second_chunk, r"x=float32\[\d+, \d+\]: .* differ with two threads from one"),
        (with_bug_behind_the_grain, r"called with x=float32\[\d+, \d+\]: output: .* are wrong"),
    ],
)
def test_fault_behind_a_grain_is_found(kernel: Callable[[Tensor], Tensor], message: str) -> None:
    threads = torch.get_num_threads()
    with pytest.raises(AssertionError, match=message):
        check(kernel)
    assert torch.get_num_threads() == threads


def test_kernel_without_threads_is_said_to_be_unchecked() -> None:
    [note] = check(on_this_thread, torch.ones(2, 3))
    assert note.startswith(
        "threads: no call was split among threads, neither a sample nor one of 2"
    )


def test_sample_that_is_split_is_enough() -> None:
    def kernel(x: Tensor) -> Tensor:
        return twice(x) if x.numel() > 2**20 else on_this_thread(x)

    assert check(kernel, torch.ones(2, 2**20)) == []


def test_only_threads_that_work_meanwhile_are_seen() -> None:
    wake, woken, end = threading.Event(), threading.Event(), threading.Event()

    def sleep() -> None:
        wake.wait()
        woken.set()
        end.wait()

    sleeper = threading.Thread(target=sleep)
    sleeper.start()
    _, while_idle = run_watched(lambda: None)
    _, while_woken = run_watched(lambda: [each() for each in (wake.set, woken.wait)])
    end.set()
    sleeper.join()
    assert sleeper.native_id not in while_idle
    assert sleeper.native_id in while_woken
