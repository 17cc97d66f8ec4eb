"""custom-pypto samples, on the installed ops."""

from __future__ import annotations

import json
from typing import Any

import pytest
from custom_pypto import core
from custom_pypto.core.call_text import describe_argument
from custom_pypto_cli import main, subprocess_call
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_testing import drawn_samples
from custom_pypto_testing.drawn_samples import DRAWS
from custom_pypto_testing.sample_generator import DrawingError

OP = "npu_lightning_indexer_prolog_pto"


def shown(capsys: pytest.CaptureFixture[str], *options: str, status: int = 0) -> str:
    assert main(["samples", *options]) == status
    printed = capsys.readouterr()
    return printed.out or printed.err


def calls(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    [op] = json.loads(shown(capsys, OP, "--json", *options))["ops"]
    assert (op["op"], op["problem"]) == (OP, "")
    found: list[dict[str, Any]] = op["calls"]
    return found


def without_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the command work in this process."""
    monkeypatch.setattr(
        subprocess_call, "call", lambda find, *given, **_: Outcome(value=find(*given))
    )


def test_shows_the_samples_of_the_plugin_and_as_many_random_calls_as_the_suite_draws(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [each["name"] for each in calls(capsys)]
    samples = core.samples(OP)
    expected = [
        name
        for sample in samples
        for name in (sample.name, *([f"{sample.name}, resized"] if sample.resized else ()))
    ]
    assert names == [*expected, *(f"random-{number}" for number in range(DRAWS))]


def test_shows_one_call_a_line_with_shapes_dtypes_and_scalars(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heading, *lines = shown(capsys, OP, "--count", "0").splitlines()
    assert heading == f"torch.ops.custom_pypto.{OP}"
    first = core.samples(OP)[0]
    assert lines[0].split()[0] == first.name
    for text in (f"token_x={describe_argument(first.kwargs['token_x'])}", "layout_query='TND'"):
        assert f"{text}, " in lines[0]


def test_says_why_an_op_has_no_calls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw_none(*_: object) -> None:
        raise DrawingError("add_custom: none of 3000 random calls fits")

    # The command's child sees no patch.
    monkeypatch.setattr(drawn_samples, "drawn_calls", draw_none)
    without_child(monkeypatch)
    assert shown(capsys, "add_custom_backward", status=1).endswith(
        "  problem: DrawingError: add_custom: none of 3000 random calls fits\n"
    )


def test_the_seed_chooses_the_random_calls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def drawn(*options: str) -> list[Any]:
        found = calls(capsys, "--count", "2", *options)
        return [each["arguments"] for each in found if each["name"].startswith("random-")]

    default, seeded = drawn(), drawn("--seed", "a")
    assert len(default) == 2
    # Another process draws the same.
    without_child(monkeypatch)
    assert drawn("--seed", "a") == seeded != drawn("--seed", "b")
    assert drawn("--seed", OP) == default


def test_an_unknown_name_is_an_error_with_similar_ones(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "add_custon", status=2)
    assert text.startswith(
        "custom-pypto samples: no installed op or plugin is called 'add_custon'; did you mean"
    )
