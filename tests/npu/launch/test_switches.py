"""Mechanisms that no hardware has confirmed are off by default, and are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

ALLOCATION = "CUSTOM_PYPTO_NPU_ALLOCATION"
EXECUTOR_CACHE = "CUSTOM_PYPTO_NPU_EXECUTOR_CACHE"
ON = {ALLOCATION: "1", EXECUTOR_CACHE: "1"}
BEHAVES = """
import tempfile
x, printed, before = torch.ones(1).npu(), tempfile.TemporaryFile("w+"), os.dup(2)
os.dup2(printed.fileno(), 2)
allocates = ops.test_allocates(x, {!r})
os.dup2(before, 2)
printed.seek(0)
give([allocates, [line for line in printed if "custom_pypto: results are" in line]])
"""


def test_results_are_allocated_as_torch_npu_s_own_are(launch: Callable[..., Any]) -> None:
    assert launch(BEHAVES.format("as it does"), **ON) == [True, []]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [("reversed", "its result is of another shape"), ("throwing", "not that function")],
)
def test_a_function_that_is_another_one_is_not_used(
    launch: Callable[..., Any], behaviour: str, reason: str
) -> None:
    allocates, (warning,) = launch(BEHAVES.format(behaviour), **ON)
    assert not allocates
    assert reason in warning
    assert f"Unset {ALLOCATION}" in warning


def test_the_check_fails_where_torch_cannot_allocate(launch: Callable[..., Any]) -> None:
    code = """
x = torch.ones(1).npu()
sim.fail("allocation")
give(refusal(ops.test_allocates, x, "as it does"))
give(ops.test_allocates(x, "as it does"))
"""
    refused, allocates = launch(code, PYTORCH_NO_NPU_MEMORY_CACHING=1, **ON)
    assert "empty_strided" in refused
    assert allocates


LAUNCHES = """
x = torch.arange(12.).npu().view(3, 4)
runs = []
for _ in range(2):
    before = sim.calls("phase1")
    out = everything(x.t())
    torch.npu.synchronize()
    runs.append(sim.calls("phase1") - before)
give([runs, out.stride(), (out - NUMBER).tolist()])
"""


@pytest.mark.parametrize(
    ("variable", "value", "runs"),
    [(ALLOCATION, "0", [1, 0]), (ALLOCATION, "1", [1, 0]), (EXECUTOR_CACHE, "", [1, 1])],
)
def test_results_are_the_same_either_way(
    launch: Callable[..., Any], variable: str, value: str, runs: list[int]
) -> None:
    counted, strides, values = launch(LAUNCHES, **ON | {variable: value})
    assert counted == runs
    assert strides == [3, 1]
    assert values == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]


@pytest.mark.parametrize("value", ["", "0"])
def test_allocation_through_torch_npu_is_off_by_default(
    launch: Callable[..., Any], value: str
) -> None:
    assert launch(BEHAVES.format("as it does"), **{ALLOCATION: value}) == [False, []]


@pytest.mark.parametrize("variable", [ALLOCATION, EXECUTOR_CACHE])
def test_a_switch_is_0_or_1(launch: Callable[..., Any], variable: str) -> None:
    text = launch("give(refusal(everything, torch.ones(1).npu()))", **{variable: "off"})
    assert f"{variable} must be 0 or 1, got 'off'" in text
