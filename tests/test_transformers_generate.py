"""The example that generates with transformers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from examples.transformers_generate.__main__ import main
from examples.transformers_generate.generation import IMPLEMENTATIONS, Generated
from examples.transformers_generate.report import find_differing, table


def test_table_tells_where_tokens_differ() -> None:
    eager, sdpa, ours = (
        Generated(1024, name, tokens, seconds)
        for name, tokens, seconds in zip(
            IMPLEMENTATIONS, ((1, 2, 3), (1, 2, 3), (1, 9, 3)), (0.5, 0.1, 0.1), strict=True
        )
    )
    line = list(table([eager, sdpa, ours]))[-1]
    assert line.split() == ["1,024", "2.0", "10.0", "10.0", "5.0x", "1.0x", "differ"]
    assert find_differing([eager, sdpa, ours]) == [ours]


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
    assert output.count("all 3") == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
