"""custom-pypto verify, on simulated NPUs; its processes are forked: none waits for imports."""

import json
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_cli import main, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_testing.verification.processes import RUNS
from programs import run_program
from readme import code_of
from simulated import Simulated
from worker import RunCode

# As the prologue of subprocess_call.py. The alarm stands in for the end by the parent.
_RUN = """
import json, signal, sys
def report(value, key="value"):
    print(json.dumps({{key: value}}), flush=True)
signal.alarm({seconds})
{arm}
try:
    exec({code!r})
except Exception as error:
    report(type(error).__name__ + ": " + str(error), "exception")
    raise
"""


@dataclass(frozen=True)
class Verified:
    """What the command did."""

    status: int
    report: str
    data: Any
    """The JSON of the report."""

    def of(self, op: str) -> list[dict[str, Any]]:
        """The results of the checks of an op, or of the machine."""
        return [each for each in self.data["checks"] if each["subject"] == op]


Verify = Callable[..., Verified]


# Not the plugin of this name, which has two.
ONE_OP = "custom_pypto::add_custom"
# The faults of tests come when the op is called, not while its arguments are copied.
AT_CALL = """
import custom_pypto_simulator as sim, torch
from custom_pypto_testing.case import Case
run_right = Case.run
def run(self):
    torch.npu.synchronize()
    {}
    return run_right(self)
Case.run = run
"""


@pytest.fixture
def verify(
    monkeypatch: pytest.MonkeyPatch, machines: Simulated, opp: dict[str, str], tmp_path: Path
) -> Verify:
    """Runs the command with the kernels of custom opp packages.

    `arm` is code that runs before the checks that it names.
    """
    file, packages = tmp_path / "report.md", {"ASCEND_CUSTOM_OPP_PATH": opp["custom"]}
    armed: dict[str, str] = {}

    def run_child(
        code: str,
        *,
        time_limit: float = subprocess_call.TIME_LIMIT,
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        variables = {**packages, **(environment or {})}
        arms = [text for check, text in armed.items() if f"(*(['{check}'" in code]
        script = _RUN.format(code=code, seconds=int(time_limit), arm="\n".join(arms))
        done = machines.server(variables).run(script, [], variables)
        status = None if done.returncode == -signal.SIGALRM else done.returncode
        return subprocess_call.judge(status, done.stdout, done.stderr, time_limit)

    def run(*arguments: str, arm: Mapping[str, str] | None = None) -> Verified:
        armed.update(arm or {})
        status = main(["verify", *arguments, "--output", str(file)])
        report = file.read_text(encoding="utf-8")
        return Verified(status, report, json.loads(*code_of(report, "json")))

    monkeypatch.setattr(subprocess_call, "run", run_child)
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", opp["custom"])
    return run


def test_a_right_op_passes_every_check(verify: Verify) -> None:
    # It writes its arguments.
    op = "npu_advance_step_flashattn"
    done = verify(op, "--calls", "1")
    assert done.status == 0, done.report
    found = [(each["setting"], each["check"]) for each in done.of(op)]
    assert found == [(run.setting, check) for run in RUNS["npu"] for check in run.checks]
    assert {each["verdict"] for each in done.of(op)} == {"passed"}
    assert done.data["npus"]["name"] == "Ascend910B1"
    assert done.data["npus"]["version of CANN"] == "8.5.0"
    assert done.data["seconds"] > 0
    [torch] = [each for each in done.data["doctor"]["torch"] if each["name"] == "import torch_npu"]
    assert torch["value"] == "ok"


FAULTS = {
    "creation": ("sim.fail('aclCreateTensor')", "aclCreateTensor: fault injected"),
    "execution": ("sim.fail('run:aclnnAddCustom')", "run:aclnnAddCustom: fault injected"),
    "lost device": ("sim.lose_device()", "device 0 is lost"),
    "hang": ("sim.delay('*', 1000)", "did not end within 8 s"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_ends_the_checks_of_the_op(verify: Verify, fault: str) -> None:
    code, text = FAULTS[fault]
    done = verify(ONE_OP, "--time-limit", "8", arm={"launch": AT_CALL.format(code)})
    assert done.status == 1
    first, *others = done.of("add_custom")
    assert (first["check"], first["verdict"]) == ("launch", "failed")
    assert text in first["text"]
    assert "the last call was float16: add_custom(self=" in first["text"]
    assert {each["verdict"] for each in others} == {"not run"}


@pytest.mark.slow
def test_results_that_are_wrong_are_named(verify: Verify) -> None:
    # The device's own add is right.
    wrong = "self.tensors['self'].add_(1)"
    done = verify(ONE_OP, "--calls", "2", arm={"results": AT_CALL.format(wrong)})
    launch, results, *others = done.of("add_custom")
    assert launch["verdict"] == "passed"
    assert "2 of 2 calls are wrong:\nfloat16: output: " in results["text"]
    assert {each["verdict"] for each in others} == {"not run"}


WRONG_OP = """
import torch, torch_npu
from custom_pypto_plugin import Reference, SampleInput
from custom_pypto_testing import Op, checks
library = torch.library.Library("verified", "FRAGMENT")
library.define("twice(Tensor x) -> Tensor")
kept = []
def on_another_stream(x):
    with torch.npu.stream(torch.npu.default_stream()):
        return x * 2
def once(x):
    kept.append(x * 2)
    return kept[0] * 1
library.impl("twice", {kernel}, "PrivateUse1")
sample = SampleInput((torch.arange(1.0, 7.0).npu(),), name="numbers")
twice = torch.ops.verified.twice.default
[case] = Op(twice, (sample,), Reference(lambda x: x * 2), device="npu").cases
try:
    print(checks.{check}(case))
except AssertionError as error:
    print("found:", error)
"""


@pytest.mark.parametrize(
    ("kernel", "check"), [("on_another_stream", "check_streams"), ("once", "check_capture")]
)
def test_an_op_that_does_not_wait_for_its_stream_or_is_not_captured_is_found(
    run_code: RunCode, kernel: str, check: str
) -> None:
    printed = run_code("custom", WRONG_OP.format(kernel=kernel, check=check))
    assert "found: output: " in printed, printed


@pytest.mark.slow
def test_a_device_without_memory_is_named_and_no_op_is_called(verify: Verify) -> None:
    memory = "import os; os.environ['CUSTOM_PYPTO_SIM_MEMORY'] = '1000000'"
    done = verify(ONE_OP, arm={"add": memory})
    assert done.status == 1
    add, *_ = done.of("machine")
    assert (add["check"], add["verdict"]) == ("add", "failed")
    assert "NPU out of memory" in add["text"]
    assert {each["verdict"] for each in done.of("add_custom")} == {"not run"}


# The other tests fork processes that have torch_npu imported.
IN_A_PROCESS = """
from custom_pypto_cli import subprocess_call
from custom_pypto_testing.verification import isolated_checks
# On a busy machine, it takes ten times as long.
outcome = subprocess_call.call(isolated_checks.check, ["add"], "", "npu", 1, time_limit=600)
print(outcome.value[0]["verdict"] if outcome.ok else outcome)
"""


@pytest.mark.slow
def test_a_check_runs_in_a_process_that_has_imported_nothing() -> None:
    command = ("custom-pypto-sim", "run", "--", sys.executable, "-c", IN_A_PROCESS)
    assert run_program(*command, env={"CUSTOM_PYPTO_PLUGINS": "add_custom"}).stdout == "passed\n"
