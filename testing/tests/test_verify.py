"""custom-pypto verify: what it makes of the ends of its processes, and what it writes."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_cli import main, subprocess_call
from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_discovery import distributions
from custom_pypto_testing.commands import verify
from custom_pypto_testing.verification import report as written
from custom_pypto_testing.verification.processes import RUNS
from custom_pypto_testing.verification.report import FASTER, SWITCHED
from readme import code_of

PLUGIN = {
    "name": "mine",
    "version": "1.0",
    "distribution": "acme-mine",
    "status": "loaded",
    "reason": "",
    "library_sha256": "5a" * 32,
}
FOUND = {"plugins": [PLUGIN], "ops": {"mine": ["my_op", "other_op"]}, "unknown": ""}
WRONG = "output: wrong"
CRASH = Outcome(failure="crashed with SIGSEGV\nits output ended with:\nlast words")
HANG = Outcome(failure="did not end within 300 s", timed_out=True)
CHECKS = [check for run in RUNS["npu"] for check in run.checks]


class Children:
    """Stands in for the processes: each check of an op ends as `ends` says, or passes.

    A text is what is wrong, an outcome the end of the process.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Replace them."""
        self.ends: dict[tuple[str, str], str | Outcome | BaseException] = {}
        self.before: Callable[[list[str], dict[str, str]], None] = lambda checks, variables: None
        """Is told of each process of an op: its checks and its variables."""
        self.npus = Outcome(value={"name": "Ascend910B1"})
        self.found: dict[str, Any] = FOUND
        self.lacking = "nothing"
        self.calls: list[tuple[list[str], str, dict[str, str]]] = []
        monkeypatch.setattr(subprocess_call, "call", self.call)
        healthy = {"torch": [Check("torch", "2.13.0")]}
        monkeypatch.setattr(verify, "examine", lambda limit: healthy)

    def call(
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
        checks, op, *_ = given
        self.before(checks, environment or {})
        self.calls.append((checks, op, environment or {}))
        done: list[dict[str, Any]] = []
        for check in checks:
            end = self.ends.get((check, op), "")
            if isinstance(end, BaseException):
                raise end
            if isinstance(end, Outcome):
                progress = {"done": done, "call": f"drawn-0: {op}()"}
                return Outcome(failure=end.failure, progress=progress)
            verdict = "does not apply" if self.lacking in checks else "passed"
            verdict = "failed" if end else verdict
            done.append(
                {"check": check, "verdict": verdict, "text": end or "3 calls", "seconds": 0}
            )
            if end:
                break
        return Outcome(value=done)


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
    return json.loads(*code_of(report, "json"))


def verdicts(report: str, op: str, setting: str = "") -> dict[str, str]:
    found = [e for e in data(report)["checks"] if e["subject"] == op and setting in e["setting"]]
    return {each["check"]: each["verdict"] for each in found}


def test_a_report_says_what_it_ran_on(run):
    report = run()
    assert report.count("Device npu; began ") == report.count("This file holds: ") == 1
    assert f". {2 + 2 * len(CHECKS)} passed.\n" in report
    assert "    name  Ascend910B1\n" in report
    assert f"    mine  1.0  acme-mine  loaded  {'5a' * 32}\n" in report
    assert "    torch\n      torch  2.13.0\n" in report
    assert data(report)["passed"] is True


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (CRASH, "crashed with SIGSEGV\n    its output ended with:\n    last words"),
        (HANG, "did not end within 300 s"),
        (WRONG, "output: wrong"),
    ],
)
def test_a_check_that_ends_badly_stops_no_other(run, children, end, words):
    children.ends["capture", "my_op"] = end
    report = run(status=1)
    queue = "TASK_QUEUE_ENABLE=1"
    assert f"## my_op: {queue}: capture: failed\n\n    {words}\n" in report
    assert f"| my_op | {queue} | capture | failed | 0.0 | {words.partition(chr(10))[0]} |" in report
    of_op = verdicts(report, "my_op")
    assert {name for name in of_op if of_op[name] == "failed"} == {"capture"}
    assert list(of_op) == list(dict.fromkeys(CHECKS))
    assert set(verdicts(report, "other_op").values()) == {"passed"}
    [first, second, *_] = [checks for checks, op, _ in children.calls if op == "my_op"][1:]
    assert second == first[first.index("capture") + 1 :]


@pytest.mark.parametrize("check", ["launch", "results"])
def test_nothing_more_is_run_of_an_op_whose_calls_are_wrong(run, children, check):
    children.ends[check, "my_op"] = CRASH
    report = run(status=1)
    assert "    the last call was drawn-0: my_op()\n" in report
    left = CHECKS[CHECKS.index(check) + 1 :]
    of_op = [each for each in data(report)["checks"] if each["subject"] == "my_op"]
    assert [each["verdict"] for each in of_op].count("not run") == len(left)
    assert f"| npugraph_ex | not run | 0.0 | not run: the check '{check}' failed |" in report
    assert set(verdicts(report, "other_op").values()) == {"passed"}


def test_repeats_streams_and_graphs_run_without_switches_with_each_and_with_both(run, children):
    run()
    found: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for checks, op, variables in children.calls:
        on = tuple(name for name in FASTER if variables[name] == "1")
        queue = variables.get("TASK_QUEUE_ENABLE", "")
        if op == "my_op":
            found.setdefault(on, set()).update((queue, check) for check in checks)
    queued = {(queue, check) for queue in "12" for check in ("repeats", "streams")}
    graphs = {("1", each) for each in ("capture", "npugraph_ex", "graph", "symbolic_graph")}
    assert found.pop(()) == queued | graphs | {("0", "launch"), ("1", "results"), ("2", "results")}
    assert found == dict.fromkeys([FASTER[:1], FASTER[1:], FASTER], queued | graphs)


@pytest.mark.parametrize("switches", SWITCHED)
def test_the_report_says_what_to_set(run, children, switches):
    def fail(checks: list[str], variables: dict[str, str]) -> None:
        is_on = all(variables.get(switch) == "1" for switch in switches)
        children.ends["repeats", "other_op"] = WRONG if is_on else ""

    children.before = fail
    report = run(status=1)
    for each in SWITCHED:
        setting = " ".join(f"{switch}=1" for switch in each)
        fails = {*switches} <= {*each}
        advice = (
            "do not set this here, because an op" if fails else "set this for the ops below; none"
        )
        assert f"\n{setting}, for faster launches: {advice} failed.\n" in report


def test_an_op_that_was_not_checked_is_no_fault_of_the_faster_way(run, children):
    children.ends["results", "other_op"] = WRONG
    assert run(status=1).count("=1, for faster launches: not decided, because some op") == 3


def test_nothing_more_is_run_on_a_device_that_a_check_has_broken(run, children):
    children.ends["launch", "my_op"] = CRASH

    def break_device(checks: list[str], variables: dict[str, str]) -> None:
        if checks == ["launch"]:
            children.ends["add", ""] = WRONG

    children.before = break_device
    report = run(status=1)
    assert set(verdicts(report, "other_op").values()) == {"not run"}
    since = "torch's own add fails since 'launch' of my_op"
    assert (
        f"| other_op | TASK_QUEUE_ENABLE=0 | launch | not run | 0.0 | not run: {since} |" in report
    )
    assert f"    {since}: output: wrong\n" in report


@pytest.mark.parametrize(("check", "verdict"), [("add", "not run"), ("versions", "passed")])
def test_torch_s_own_add_decides_whether_ops_are_called(run, children, check, verdict):
    children.ends[check, ""] = WRONG
    report = run(status=1)
    assert verdicts(report, "machine")[check] == "failed"
    assert set(verdicts(report, "my_op").values()) == {verdict}
    assert ("not run: the machine's check 'add' failed" in report) == (check == "add")
    assert ("my_op" in {op for _, op, _ in children.calls}) == (check == "versions")


def test_what_an_op_does_not_have_is_looked_for_once(run, children):
    children.lacking = "results"
    assert verdicts(run(), "my_op", "=1") == dict.fromkeys(CHECKS[1:], "does not apply")
    assert [checks for checks, op, _ in children.calls if op == "my_op"][2:] == []


def test_a_plugin_that_does_not_load_stays_out_of_the_checks(run, children):
    broken = {**PLUGIN, "name": "bad", "status": "failed", "reason": "it crashed"}
    children.found = {**FOUND, "plugins": [PLUGIN, broken], "ops": {**FOUND["ops"], "bad": []}}
    assert "| plugin bad |  | load | failed | 0.0 | failed: it crashed |" in run(status=1)
    assert all(each["CUSTOM_PYPTO_DISABLE"] == "bad" for _, _, each in children.calls)


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


@pytest.mark.parametrize("unknown", ["no op 'x'", ""])
def test_nothing_to_check_is_an_error(run, children, unknown):
    children.found = {"plugins": [], "ops": {}, "unknown": unknown}
    assert (unknown or "no op plugin is installed, so") in run(status=2)


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
    assert ", did not end yet. 4 passed." in report
    assert data(report)["passed"] is False


def test_texts_of_processes_can_neither_change_the_table_nor_act_on_a_terminal(run, children):
    problem = "a | b\x1b[2J\x7f\n```\n| c |"
    children.ends["launch", "my_op"] = Outcome(failure=problem)
    report = run(status=1)
    assert r"| a \| b\x1b[2J\x7f |" in report
    assert "\n    ```\n    | c |\n" in report
    [found] = [each for each in data(report)["checks"] if each["verdict"] == "failed"]
    assert found["text"].startswith(problem)


def test_only_the_report_is_written(run, tmp_path):
    other, part = tmp_path / "other", tmp_path / "report.md.part"
    other.touch()
    part.symlink_to(other)
    run()
    assert other.read_text(encoding="utf-8") == ""
    assert {each.name for each in tmp_path.iterdir()} == {"other", part.name, "report.md"}


def test_a_name_that_a_row_would_cut_is_hidden(run, children, monkeypatch):
    monkeypatch.setattr(written, "_patterns", lambda: [(re.compile("/data/alice"), "~")])
    children.ends["launch", "my_op"] = "x" * 192 + "/data/alice" + "y" * 50
    assert "/data" not in run(status=1)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("/data/alice/venv/lib", "/data/<user>/venv/lib"),
        ("/mnt/alice/venv of alice", "/mnt/<user>/venv of alice"),
        ("/homes/a", "~"),
        ("/homes/ab", "/homes/ab"),
        ("/home/bob/x.so", "~/x.so"),
        ("/data/alice: Permission denied", "/data/<user>: Permission denied"),
        ("/data/alice.txt", "/data/alice.txt"),
        ("[node-7] error", "[<host>] error"),
        ("node-7.acme.org: error", "<host>: error"),
        ("float16[7, 33]", "float16[7, 33]"),
    ],
)
def test_a_report_does_not_say_who_ran_it_and_where(monkeypatch, text, hidden):
    monkeypatch.setattr(written.Path, "home", lambda: Path("/homes/a"))
    monkeypatch.setattr(written.getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(written.socket, "gethostname", lambda: "node-7.acme.org")
    written._patterns.cache_clear()
    try:
        assert written.hide({"text": [text]}) == {"text": [hidden]}
    finally:
        written._patterns.cache_clear()
