"""The example that trains a model, at a size that takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.text import Text
from examples.transformers_train.__main__ import main
from examples.transformers_train.training import Plan, train

SMALL = ["--no-install", "--tokens", "24", "--top-k", "6", "--warm-up", "20", "--steps", "15"]


def test_losses_fall_and_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, text = tmp_path / "losses.png", tmp_path / "text.txt"
    text.write_text("she sells sea shells " * 20)  # learned in a few steps
    assert main([*SMALL, "--text", str(text), "--output", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "sparse, 6 keys" in printed


def test_dense_and_sparse_go_on_from_the_same_weights() -> None:
    """With as many keys as there are tokens, sparse attention is dense."""
    plan = Plan(tokens=16, top_k=16, warm_up=2, steps=3, seed=0)
    _, dense, sparse = train(Text("a", bytes(range(32, 127)) * 20), plan, lambda: None)
    assert dense.losses == sparse.losses
    assert dense.indexer_losses == sparse.indexer_losses


def test_a_loss_that_does_not_fall_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--tokens", "8", "--top-k", "4", "--warm-up", "1", "--steps", "1", "--no-install"]
    assert main([*arguments, "--output", str(tmp_path / "losses.png")]) == 1
    assert "the loss did not fall" in capsys.readouterr().err
