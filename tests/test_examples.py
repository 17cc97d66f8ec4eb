"""The examples, at sizes that take seconds."""

import re
import sys
from pathlib import Path

import pytest

from examples import transformers_generate
from examples.sparse_decode.__main__ import main
from examples.transformers_generate import MODELS


@pytest.mark.parametrize(
    ("option", "file", "message"),
    [
        ("--text", "empty.txt", "empty.txt: the file is empty"),
        ("--text", "absent", "absent: No such file or directory; name a readable"),
    ],
)
def test_a_file_that_cannot_be_used_ends_the_example_before_any_work(
    option: str, file: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    assert main(["--no-install", option, str(tmp_path / file)]) == 1
    assert message in capsys.readouterr().err


def test_no_environment_but_a_virtual_one_is_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert main([]) == 1
    assert "only runs in a virtual environment" in capsys.readouterr().err


def test_small_size_decodes_within_the_tolerance(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--no-install", "--size", "small", "--steps", "2"])
    output = capsys.readouterr().out
    assert status == 0
    assert "every step is within the published tolerance" in output
    assert re.search(r"^  torch eager in (bf16|fp32) ", output, re.MULTILINE)


@pytest.mark.parametrize("model", MODELS)
def test_all_generate_the_same_tokens(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    contexts = ["64", "1100"] if model == "deepseek_v32" else ["300"]
    options = ["--model", model, "--contexts", *contexts, "--tokens", "3"]
    assert transformers_generate.main(options) == 0
    assert capsys.readouterr().out.count("all 3") == len(contexts)
