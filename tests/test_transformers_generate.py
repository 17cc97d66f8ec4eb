"""The example that generates with transformers: its clock, its verdict, its picture."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from examples.transformers_generate.__main__ import main
from examples.transformers_generate.generation import (
    IMPLEMENTATIONS,
    Clock,
    Generated,
    make_prompt,
)
from examples.transformers_generate.report import find_differing, table


def _result(implementation: str, tokens: tuple[int, ...], seconds: float = 0.1) -> Generated:
    return Generated(1024, implementation, tokens, seconds)


def test_clock_counts_the_tokens_and_not_the_prompt() -> None:
    calls: list[None] = []
    clock = Clock(lambda: calls.append(None))
    clock.put(torch.ones(1, 7))
    for _ in range(3):
        clock.put(torch.ones(1))
    assert len(clock.times) == len(calls) == 3
    assert clock.seconds > 0


def test_table_tells_where_tokens_differ() -> None:
    eager, sdpa, ours = IMPLEMENTATIONS
    results = [_result(eager, (1, 2, 3), 0.5), _result(sdpa, (1, 2, 3)), _result(ours, (1, 9, 3))]
    line = list(table(results))[-1]
    assert "all 3" in line
    assert "not from token 2 on" in line
    assert "5.0x" in line
    assert find_differing(results) == [results[2]]


def test_longer_prompt_begins_with_the_shorter_one() -> None:
    assert torch.equal(make_prompt(9, 1)[:, :5], make_prompt(5, 1))


def test_missing_integration_ends_the_example_with_a_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "custom_pypto_transformers", None)
    status = main(["--no-install", "--output", str(tmp_path / "p.png")])
    assert status == 1
    assert "`tox -e transformers` installs everything" in capsys.readouterr().err


def test_every_way_generates_the_same_tokens(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "out" / "time.png"
    arguments = ["--no-install", "--contexts", "64", "1100", "--tokens", "3"]
    status = main([*arguments, "--output", str(picture)])
    output = capsys.readouterr().out
    assert status == 0
    assert output.count("all 3") == 4
    assert picture.read_bytes().startswith(b"\x89PNG")
