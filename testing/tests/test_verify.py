"""custom-pypto verify: what it makes of the ends of its processes, and what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_cli import main, subprocess_call
from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_discovery import distributions
from custom_pypto_testing.commands import verify
from custom_pypto_testing.verification import privacy
from custom_pypto_testing.verification.checks import OF_OPS, checks_on

OP = {"name": "my_op", "dispatch_keys": ["CPU", "PrivateUse1"]}
PLUGIN = {
    "name": "mine",
    "version": "1.0",
    "distribution": "acme-mine",
    "status": "loaded",
    "reason": "",
    "library_sha256": "5a" * 32,
    "ops": [OP, {**OP, "name": "other_op"}],
}
FOUND = {"plugins": [PLUGIN], "ops": {"mine": ["my_op", "other_op"]}, "unknown": ""}
GOOD = Outcome(value={"text": "3 calls", "problem": "", "numbers": {"calls": 3}, "applies": True})
WRONG = Outcome(value={"text": "", "problem": "output: wrong", "numbers": {}, "applies": True})
CRASH = Outcome(
    failure="crashed with SIGSEGV\nits output ended with:\nlast words", progress="drawn-0: my_op()"
)
HANG = Outcome(failure="did not end within 300 s", timed_out=True)

Key = tuple[str, ...]


class Children:
    """Stands in for the processes: they end as `ends` says, by check and op; else well."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace them."""
        self.ends: dict[Key, Outcome | BaseException] = {}
        self.npus = Outcome(value={"name": "Ascend910B1"})
        self.found: dict[str, Any] = FOUND
        self.calls: list[tuple[Key, dict[str, str]]] = []
        monkeypatch.setattr(subprocess_call, "call", self._call)
        healthy = {"torch": [Check("torch", "2.13.0")]}
        monkeypatch.setattr(verify, "examine", lambda limit: healthy)

    def _call(
        self,
        function: Callable[..., object],
        *given: Any,
        time_limit: float = 0,
        environment: dict[str, str] | None = None,
    ) -> Outcome:
        if function.__name__ == "describe_npus":
            return self.npus
        if function.__name__ == "find":
            return Outcome(value=self.found)
        key = (given[0], given[2]) if function.__name__ == "check_op" else (given[0],)
        self.calls.append((key, environment or {}))
        end = self.ends.get(key, GOOD)
        if isinstance(end, BaseException):
            raise end
        return end


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    return Children(monkeypatch)


@pytest.fixture
def run(
    children: Children, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run the command; return the report, or the error if there is none."""
    file = tmp_path / "report.md"

    def run_it(*options: str, status: int = 0) -> str:
        assert main(["verify", "--output", str(file), *options]) == status
        return file.read_text(encoding="utf-8") if file.exists() else capsys.readouterr().err

    return run_it


def data(report: str) -> Any:
    return json.loads(report.partition("```json\n")[2].partition("\n```")[0])


def verdicts(report: str, op: str) -> dict[str, str]:
    return {e["check"]: e["verdict"] for e in data(report)["checks"] if e["subject"] == op}


def test_all_passed_is_status_0_and_says_what_it_ran_on(run):
    report = run()
    assert "Device npu; began " in report
    assert ". 29 passed.\n" in report
    assert "    name  Ascend910B1\n" in report
    assert f"    mine  1.0  acme-mine  loaded  {'5a' * 32}\n" in report
    assert "    torch\n      torch  2.13.0\n" in report
    assert "This file holds: " in report
    assert data(report)["passed"] is True


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (CRASH, "crashed with SIGSEGV\n    its output ended with:\n    last words"),
        (HANG, "did not end within 300 s"),
        (WRONG, "output: wrong"),
    ],
)
def test_a_check_that_ends_badly_is_a_line_and_the_other_op_goes_on(run, children, end, words):
    children.ends["results", "my_op"] = end
    report = run(status=1)
    assert f"## my_op: results: failed\n\n    {words}\n" in report
    assert words.partition("\n")[0] in report.partition("\n## ")[0] + report.partition("| my_op")[2]
    assert verdicts(report, "my_op") == {
        check.name: "passed"
        if check.name in ("kernels", "launch")
        else "failed"
        if check.name == "results"
        else "not run"
        for check in OF_OPS
    }
    assert set(verdicts(report, "other_op").values()) == {"passed"}


def test_a_failure_names_the_call_that_was_being_made(run, children):
    children.ends["launch", "my_op"] = CRASH
    assert "    the last call was drawn-0: my_op()\n" in run(status=1)


def test_what_is_not_run_says_which_check_it_needs(run, children):
    children.ends["launch", "my_op"] = CRASH
    report = run(status=1)
    assert "| my_op | results | not run | 0.0 | not run: the check 'launch' failed |" in report
    assert "| my_op | graph | not run | 0.0 | not run: the check 'results' was" in report


FASTER = {
    "allocation": "CUSTOM_PYPTO_NPU_ALLOCATION",
    "executor cache": "CUSTOM_PYPTO_NPU_EXECUTOR_CACHE",
}


def test_what_is_unconfirmed_is_off_but_in_its_own_check(run, children):
    run()
    for (check, *_), variables in children.calls:
        on = {name for name, value in variables.items() if value == "1" and name in FASTER.values()}
        assert on == ({FASTER[check]} if check in FASTER else set())


@pytest.mark.parametrize("check", FASTER)
def test_the_report_says_what_to_set(run, children, check):
    children.ends[check, "other_op"] = WRONG
    report = run(status=1)
    [other] = FASTER.keys() - {check}
    advice = "=1, for faster launches:"
    assert f"{FASTER[check]}{advice} an op failed; do not set it here.\n" in report
    assert f"{FASTER[other]}{advice} of the ops below none failed.\n" in report


def test_an_op_that_was_not_checked_is_no_fault_of_the_faster_way(run, children):
    children.ends["repeats", "other_op"] = WRONG
    assert run(status=1).count("=1, for faster launches: of the ops below some op was not") == 2


def test_nothing_more_is_run_on_a_device_that_a_check_has_broken(run, children, monkeypatch):
    children.ends["launch", "my_op"] = CRASH
    call = children._call

    def break_device(function: Callable[..., object], *given: Any, **options: Any) -> Outcome:
        if given[:1] == ("launch",):
            children.ends["add",] = WRONG
        return call(function, *given, **options)

    monkeypatch.setattr(subprocess_call, "call", break_device)
    report = run(status=1)
    assert verdicts(report, "other_op")["launch"] == "not run"
    since = "torch's own add fails since 'launch' of my_op"
    assert f"| other_op | launch | not run | 0.0 | not run: {since} |" in report
    assert f"    {since}: output: wrong\n" in report


def test_no_op_is_called_where_torch_s_own_add_fails(run, children):
    children.ends["add",] = CRASH
    report = run(status=1)
    assert set(verdicts(report, "my_op").values()) == {"not run"}
    assert "not run: the machine's check 'add' failed" in report


def test_versions_that_do_not_fit_one_another_do_not_keep_ops_from_being_checked(run, children):
    children.ends["versions",] = WRONG
    report = run(status=1)
    assert set(verdicts(report, "my_op").values()) == {"passed"}


def test_what_an_op_does_not_have_is_no_failure(run, children):
    lacking = {"text": "no graph line", "problem": "", "numbers": {}, "applies": False}
    children.ends["graph", "my_op"] = Outcome(value=lacking)
    report = run()
    assert verdicts(report, "my_op")["graph"] == "does not apply"
    assert verdicts(report, "my_op")["symbolic graph"] == "does not apply"


def test_a_plugin_that_does_not_load_is_a_failure_and_stays_out_of_the_checks(run, children):
    broken = {**PLUGIN, "name": "bad", "status": "failed", "reason": "it crashed", "ops": []}
    children.found = {**FOUND, "plugins": [PLUGIN, broken], "ops": {**FOUND["ops"], "bad": []}}
    report = run(status=1)
    assert "| plugin bad | load | failed | 0.0 | failed: it crashed |" in report
    assert all(each["CUSTOM_PYPTO_DISABLE"] == "bad" for _, each in children.calls)


def test_the_cpu_has_the_checks_that_need_no_npu(run, children):
    children.npus = Outcome(failure="not here")
    report = run("--device", "cpu")
    assert list(verdicts(report, "my_op")) == [check.name for check in checks_on("cpu", OF_OPS)]
    assert "queue" not in verdicts(report, "my_op")


@pytest.mark.parametrize(
    ("version", "outcome", "reason"),
    [
        (None, Outcome(failure="ModuleNotFoundError: ..."), "torch_npu is not installed"),
        (
            "2.13.0",
            Outcome(failure="ImportError: libhccl.so: not there\nmore"),
            "torch_npu cannot be imported (ImportError: libhccl.so: not there)",
        ),
        ("2.13.0", Outcome(value={}), "torch_npu finds none"),
    ],
)
def test_without_an_npu_one_sentence_says_what_is_missing(
    run, children, monkeypatch, version, outcome, reason
):
    monkeypatch.setattr(distributions, "version", lambda name: version)
    children.npus = outcome
    text = run(status=2)
    assert text.startswith(f"custom-pypto verify: there is no NPU here: {reason}; on a machine ")
    assert text.endswith("`custom-pypto-sim run --`, or give it `--device cpu`\n")
    assert text.count("\n") == 1


def test_a_report_is_never_overwritten(run, tmp_path):
    (tmp_path / "report.md").write_text("earlier", encoding="utf-8")
    assert run(status=2) == "earlier"


def test_a_report_that_cannot_be_written_is_an_error_before_anything_is_checked(
    children, tmp_path, capsys
):
    assert main(["verify", "--output", str(tmp_path / "missing" / "report.md")]) == 2
    assert "report.md cannot be written: " in capsys.readouterr().err
    assert children.calls == []


def test_an_interruption_leaves_what_is_known(run, children, tmp_path):
    children.ends["results", "my_op"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        run()
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert ", did not end yet. 7 passed." in report
    assert data(report)["passed"] is False


def test_texts_of_processes_can_neither_change_the_table_nor_act_on_a_terminal(run, children):
    problem = "a | b\x1b[2J\x7f\n```\n| c |"
    children.ends["launch", "my_op"] = Outcome(failure=problem)
    report = run(status=1)
    assert r"| a \| b\x1b[2J\x7f |" in report
    assert "\n    ```\n    | c |\n" in report
    [found] = [each for each in data(report)["checks"] if each["verdict"] == "failed"]
    assert found["text"].startswith(problem)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("/data/alice/venv/lib", "/data/<user>/venv/lib"),
        ("/mnt/alice/venv of alice", "/mnt/<user>/venv of alice"),
        ("/homes/a/x.so", "~/x.so"),
        ("/homes/a", "~"),
        ("/homes/ab", "/homes/ab"),
        ("/home/bob/x.so", "~/x.so"),
        ("[node-7] error", "[<host>] error"),
        ("node-70", "node-70"),
        ("float16[7, 33]", "float16[7, 33]"),
    ],
)
def test_a_report_does_not_say_who_ran_it_and_where(monkeypatch, text, hidden):
    monkeypatch.setattr(privacy.Path, "home", lambda: Path("/homes/a"))
    monkeypatch.setattr(privacy.getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(privacy.socket, "gethostname", lambda: "node-7")
    privacy._patterns.cache_clear()
    try:
        assert privacy.hide({"text": [text]}) == {"text": [hidden]}
    finally:
        privacy._patterns.cache_clear()
