"""Mechanisms that no hardware has confirmed are off by default, and are checked."""

import pytest
from worker import Launch

ALLOCATION = "CUSTOM_PYPTO_NPU_ALLOCATION"
EXECUTOR_CACHE = "CUSTOM_PYPTO_NPU_EXECUTOR_CACHE"
ON = {ALLOCATION: "1", EXECUTOR_CACHE: "1"}


@pytest.mark.parametrize(
    ("switch", "behaviour", "allocates", "reasons"),
    [
        ("1", "as it does", True, []),
        ("1", "reversed", False, ["its result is of another shape"]),
        ("1", "throwing", False, ["not that function"]),
        ("", "as it does", False, []),
        ("0", "as it does", False, []),
    ],
)
def test_results_are_allocated_by_torch_npu_if_that_is_on_and_behaves(
    launch: Launch, switch: str, behaviour: str, allocates: bool, reasons: list[str]
) -> None:
    code = f"""
import tempfile
x, printed, before = torch.ones(1).npu(), tempfile.TemporaryFile("w+"), os.dup(2)
os.dup2(printed.fileno(), 2)
allocates = ops.test_allocates(x, {behaviour!r})
os.dup2(before, 2)
printed.seek(0)
give([allocates, [line for line in printed if "custom_pypto: results are" in line]])
"""
    does, warnings = launch(code, **{ALLOCATION: switch})
    assert does == allocates
    for warning, reason in zip(warnings, reasons, strict=True):
        assert reason in warning
        assert f"Unset {ALLOCATION}" in warning


def test_the_check_fails_where_torch_cannot_allocate(launch: Launch) -> None:
    code = """
x = torch.ones(1).npu()
sim.fail("aclrtMalloc")
give(refusal(ops.test_allocates, x, "as it does"))
give(ops.test_allocates(x, "as it does"))
"""
    refused, allocates = launch(code, PYTORCH_NO_NPU_MEMORY_CACHING=1, **ON)
    assert "empty_strided" in refused
    assert allocates


@pytest.mark.parametrize(
    ("variable", "value", "runs"),
    [
        (ALLOCATION, "0", [1, 0]),
        (ALLOCATION, "1", [1, 0]),
        (EXECUTOR_CACHE, "", [1, 1]),
        ("CUSTOM_PYPTO_SIM_EXECUTOR_CACHE", "0", [1, 1]),  # CANN's cache takes no launch
    ],
)
def test_results_are_the_same_either_way(
    launch: Launch, variable: str, value: str, runs: list[int]
) -> None:
    code = """
x = torch.arange(12.).npu().view(3, 4)
results = [phase_1_runs(lambda: everything(x.t())) for _ in range(2)]
give([[runs, out.stride(), (out - NUMBER).tolist()] for out, runs in results])
"""
    values = [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    assert launch(code, **ON | {variable: value}) == [[each, [3, 1], values] for each in runs]


@pytest.mark.parametrize("variable", [ALLOCATION, EXECUTOR_CACHE])
def test_a_switch_is_0_or_1(launch: Launch, variable: str) -> None:
    text = launch("give(refusal(everything, torch.ones(1).npu()))", **{variable: "off"})
    assert f"{variable} must be 0 or 1, got 'off'" in text
