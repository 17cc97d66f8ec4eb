"""With index keys of 8 bits, tokens are transformers' choice for the keys that are selected."""

from __future__ import annotations

from typing import Any

import pytest
import selections
import torch
from checkpoints import GAP, prompts
from engine import engine, generate
from selections import gap, run
from tiny_models import TOPK

# An int8 value is at most 1/254 of its row's largest off, and so are queries and keys.
MOST_MISSED = 0.02


def test_tokens_and_selection(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = selections.record(monkeypatch)
    found = []
    with engine(model.folder, additional_config={"custom_pypto_index_cache": "int8"}) as llm:
        # The first sees fewer keys than the top-k for a while.
        for prompt in prompts(TOPK - 4, 100, 200):
            steps.clear()
            tokens = generate(llm, [prompt])[0]
            found.append((prompt, tokens, [torch.cat(each) for each in steps.values()]))
    for prompt, tokens, positions in found:
        logits, select = run(model.reference, [*prompt, *tokens[:-1]], positions)
        assert gap(logits, prompt, tokens) < GAP
        # It is not the selection of exact scores, but close to it.
        assert 0 < select.missed() < MOST_MISSED
