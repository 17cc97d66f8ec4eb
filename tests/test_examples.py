"""The examples, at sizes that take seconds."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest
import torch

from examples import transformers_generate
from examples.sparse_decode import layer
from examples.sparse_decode.__main__ import main
from examples.sparse_decode.session import PagedCache
from examples.transformers_generate import MODELS, Generated, find_differing, table

TINY = dataclasses.replace(layer.SMALL, lengths=(127, 130), steps=4)


@pytest.mark.parametrize(
    ("option", "file", "message"),
    [
        ("--text", "empty.txt", "empty.txt: the file is empty"),
        ("--text", "absent", "absent: No such file or directory; name a readable"),
        ("--output", "empty.txt/wheels", "name a file that can be written"),
    ],
)
def test_a_file_that_cannot_be_used_ends_the_example_before_any_work(
    option: str, file: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    output = ["--output", str(tmp_path / "wheels")]
    assert main(["--no-install", *output, option, str(tmp_path / file)]) == 1
    assert message in capsys.readouterr().err


def test_no_environment_but_a_virtual_one_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert main(["--output", str(tmp_path / "wheels")]) == 1
    assert "only runs in a virtual environment" in capsys.readouterr().err


def test_cache_takes_a_block_only_when_a_context_crosses_a_boundary() -> None:
    cache = PagedCache(TINY, torch.Generator().manual_seed(0))
    slots, taken = [], []
    for sequence, tokens in ((0, 127), (0, 1), (0, 1), (1, 130)):
        slots.append(cache.grow(sequence, tokens))
        taken.append(cache.used_blocks)
    assert taken == [1, 1, 2, 4]
    # No slot is given twice.
    assert torch.cat(slots).unique().numel() == 127 + 2 + 130


def test_small_size_decodes_within_the_tolerance(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    output = str(tmp_path / "wheels")
    status = main(["--no-install", "--size", "small", "--steps", "2", "--output", output])
    output = capsys.readouterr().out
    assert status == 0
    assert "every step is within the published tolerance" in output
    assert re.search(r"^  torch eager in (bf16|fp32) ", output, re.MULTILINE)


def test_table_tells_where_tokens_differ() -> None:
    eager, sdpa, ours = (
        Generated(1024, name, tokens, seconds)
        for name, tokens, seconds in zip(
            ("eager", "sdpa", "custom_pypto"),
            ((1, 2, 3), (1, 2, 3), (1, 9, 3)),
            (0.5, 0.1, 0.1),
            strict=True,
        )
    )
    line = list(table([eager, sdpa, ours]))[-1]
    assert line.split() == ["1,024", "2.0", "10.0", "10.0", "5.0x", "1.0x", "differ"]
    assert find_differing([eager, sdpa, ours]) == [ours]


@pytest.mark.parametrize("model", MODELS)
def test_every_way_generates_the_same_tokens(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    contexts = ["64", "1100"] if model == "deepseek_v32" else ["300"]
    options = ["--model", model, "--contexts", *contexts, "--tokens", "3"]
    assert transformers_generate.main(options) == 0
    assert capsys.readouterr().out.count("all 3") == len(contexts)
