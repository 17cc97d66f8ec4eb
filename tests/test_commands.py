"""custom-pypto samples, replay and verify, on the installed ops."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from custom_pypto import core
from custom_pypto.core.call_record import encode
from custom_pypto.core.call_text import describe_argument
from custom_pypto_cli import main, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_plugin import Reference
from custom_pypto_testing import drawn_samples
from custom_pypto_testing.commands import replay, verify
from custom_pypto_testing.drawn_samples import DRAWS
from custom_pypto_testing.replayed_call import replay_calls
from custom_pypto_testing.sample_generator import DrawingError
from programs import run_python
from readme import code_of

OP = "npu_lightning_indexer_prolog_pto"


def shown(capsys: pytest.CaptureFixture[str], *options: str, status: int = 0) -> str:
    assert main(["samples", *options]) == status
    printed = capsys.readouterr()
    return printed.out or printed.err


def test_shows_the_samples_and_the_random_calls_of_the_suite_one_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heading, *lines = shown(capsys, OP).splitlines()
    assert heading == f"torch.ops.custom_pypto.{OP}"
    samples = core.samples(OP)
    expected = [
        name
        for sample in samples
        for name in (sample.name, *([f"{sample.name}, resized"] if sample.resized else ()))
    ]
    expected += [f"random-{number}" for number in range(DRAWS)]
    assert len(lines) == len(expected)
    assert all(line.startswith(f"  {name}  ") for line, name in zip(lines, expected, strict=True))
    token = describe_argument(samples[0].kwargs["token_x"])
    for text in (f"token_x={token}", "layout_query='TND'"):
        assert f"{text}, " in lines[0]


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands call functions here that they call in a child: it would see no patch."""
    monkeypatch.setattr(
        subprocess_call, "call", lambda function, *given, **_: Outcome(value=function(*given))
    )


def test_says_why_an_op_has_no_calls(
    in_this_process: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw_none(*_: object) -> None:
        raise DrawingError("add_custom: none of 3000 random calls fits")

    monkeypatch.setattr(drawn_samples, "drawn_calls", draw_none)
    assert shown(capsys, "add_custom_backward", status=1).endswith(
        "  problem: DrawingError: add_custom: none of 3000 random calls fits\n"
    )


SCHEMA = "custom_pypto::add_custom(Tensor self, Tensor other) -> Tensor"


def line(**changes: Any) -> str:
    x = encode(torch.ones(3), None)
    call = {"format": 1, "op": "add_custom", "schema": SCHEMA, "args": [x, x], "kwargs": {}}
    return json.dumps(call | changes)


def replayed(path: Path, **changes: Any) -> dict[str, Any]:
    [found] = replay_calls([line(**changes)], path, 0)
    return found


def test_recorded_calls_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import torch, custom_pypto; torch.ops.custom_pypto.add_custom(*torch.ones(2, 2, 3))"
    run_python("-c", code, env={"CUSTOM_PYPTO_RECORD": str(tmp_path)})
    assert main(["replay", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        "0: add_custom(self=float32[2, 3], other=float32[2, 3]): right\n1 of 1 calls are right\n"
    )


def test_a_result_that_is_not_the_references_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(core, "reference", lambda op: Reference(lambda self, other: self - other))
    assert "output: 3 of 3 elements are wrong" in replayed(tmp_path)["problem"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"op": "missing"}, "no installed plugin provides it"),
        ({"schema": "old"}, f"the op's schema is {SCHEMA}, the call was recorded with old; inst"),
        ({"format": 2}, "the call is of form 2, this core reads form 1; record it again"),
        ({"args": [None, None]}, "RuntimeError: "),
        ({"tensors": "gone.pt"}, "FileNotFoundError: "),
    ],
)
def test_what_cannot_be_replayed_says_why(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    assert problem in replayed(tmp_path, **changes)["problem"]


def test_a_line_that_is_no_call_is_left_out(
    in_this_process: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "calls"
    ended = json.dumps({"format": 1, "ended": "the disk is full", "process": 7})
    file.write_text("\n".join([line()[:50], line(), ended, line()[:-1], line()]), encoding="utf-8")
    assert main(["replay", str(file)]) == 0
    assert [text.partition(": ")[2][:50] for text in capsys.readouterr().out.splitlines()] == [
        "left out: line 1 is no whole line of JSON: Untermi",
        "add_custom(self=float32[3], other=float32[3]): rig",
        "left out: process 7 kept no further calls: the dis",
        "left out: line 4 is no whole line of JSON: Expecti",
        "add_custom(self=float32[3], other=float32[3]): rig",
        "",
    ]


RIGHT = {"op": "add_custom", "arguments": "", "has_reference": False, "problem": "", "left_out": ""}
SAME = "add_custom(): the same twice, no reference"
# How the processes end that replay some calls, and what is printed.
CRASHES: dict[str, tuple[list[Outcome], list[str]]] = {
    "in a call": (
        [
            Outcome(failure="crashed with SIGSEGV", progress=[{**RIGHT, "call": 0}]),
            Outcome(value=[{**RIGHT, "call": 2}]),
        ],
        [f"0: {SAME}", "1: add_custom(..): problem: crashed with SIGSEGV", f"2: {SAME}", "2 of 3"],
    ),
    "after its calls": (
        [Outcome(failure="crashed with SIGABRT", progress=[{**RIGHT, "call": 0}])],
        ["0: add_custom(..): problem: crashed with SIGABRT", "0 of 1"],
    ),
}


@pytest.mark.parametrize(("ends", "printed"), CRASHES.values(), ids=CRASHES)
def test_a_child_that_crashes_is_a_problem_and_stops_no_other_call(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ends: list[int],
    printed: Any,
) -> None:
    file, left = tmp_path / "calls", iter(ends)
    file.write_text("\n".join([line()] * (len(printed) - 1)))
    monkeypatch.setattr(replay, "load_or_explain", lambda function, **options: None)
    monkeypatch.setattr(subprocess_call, "call", lambda *given, **options: next(left))
    assert main(["replay", str(file)]) == 1
    lines = [text.removesuffix(" calls are right") for text in capsys.readouterr().out.splitlines()]
    assert lines == printed


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: None, "cannot be read"),
        (Path.touch, "no call was kept in"),
        (os.mkfifo, "cannot be read: is not a regular file"),
    ],
)
def test_without_calls_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], Any], message: str
) -> None:
    make(tmp_path / "calls")
    assert main(["replay", str(tmp_path / "calls")]) == 2
    assert message in capsys.readouterr().err


def test_an_op_passes_each_check_that_needs_no_npu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(verify, "examine", lambda limit: {})
    file = tmp_path / "report.md"
    options = ("--device", "cpu", "--calls", "2", "--output", str(file))
    status = main(["verify", "npu_advance_step_flashattn", *options])
    report = file.read_text(encoding="utf-8")
    assert status == 0, report
    checks = json.loads(*code_of(report, "json"))["checks"]
    assert [(each["check"], each["verdict"]) for each in checks] == [
        (name, "passed") for name in ("add", "launch", "results", "repeats")
    ]
