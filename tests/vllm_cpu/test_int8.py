"""With index keys of 8 bits, tokens are transformers' choice for the keys that are selected."""

from __future__ import annotations

from pathlib import Path

import pytest
import selections
import torch
from checkpoints import load_reference, make_checkpoint, prompts
from engine import engine, generate
from selections import run
from tiny_models import DENSE, TOPK

from examples.vllm_serve.checkpoint import GAP, gap

# An int8 value is at most 1/254 of its row's largest off, and so are queries and keys.
MOST_MISSED = 0.02


@pytest.mark.parametrize("family", ["DeepseekV32", "GlmMoeDsa"])
def test_tokens_and_selection(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In transformers' model, topk must be that of the indexers only.
    make_checkpoint(tmp_path, family, **DENSE)
    steps = selections.record(monkeypatch)
    found = []
    with engine(tmp_path, additional_config={"custom_pypto_index_cache": "int8"}) as llm:
        # The first sees fewer keys than the top-k for a while.
        for prompt in prompts(TOPK - 4, 100, 200):
            steps.clear()
            tokens = generate(llm, [prompt])[0]
            found.append((prompt, tokens, [torch.cat(each) for each in steps.values()]))
    reference = load_reference(tmp_path)
    missed = []
    for prompt, tokens, positions in found:
        logits, select = run(reference, [*prompt, *tokens[:-1]], positions)
        assert gap(logits[len(prompt) - 1 :], tokens) < GAP
        missed.append(select.missed())
    # It is not the selection of exact scores, but close to it.
    assert 0 < max(missed) < MOST_MISSED, missed
