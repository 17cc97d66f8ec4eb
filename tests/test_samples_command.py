"""custom-pypto samples, on the installed ops."""

from __future__ import annotations

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


def test_says_why_an_op_has_no_calls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def draw_none(*_: object) -> None:
        raise DrawingError("add_custom: none of 3000 random calls fits")

    # The command's child sees no patch.
    monkeypatch.setattr(drawn_samples, "drawn_calls", draw_none)
    monkeypatch.setattr(
        subprocess_call, "call", lambda find, *given, **_: Outcome(value=find(*given))
    )
    assert shown(capsys, "add_custom_backward", status=1).endswith(
        "  problem: DrawingError: add_custom: none of 3000 random calls fits\n"
    )


def test_an_unknown_name_is_an_error_with_similar_ones(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "add_custon", status=2)
    assert text.startswith(
        "custom-pypto samples: no installed op or plugin is called 'add_custon'; did you mean"
    )
