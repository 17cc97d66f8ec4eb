"""In 16 bits, tokens and selected keys are those of fp32 within rounding.

Rounding is measured: how far the logits and the index scores of transformers' model in 16 bits are
from those of fp32. If two values move by that much towards each other, twice as much may lie
between the value that was taken and the best one.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import selections
import torch
from checkpoints import load_reference, make_checkpoint, prompts
from engine import engine, generate
from selections import distance, run
from tiny_models import DENSE, TOPK

from examples.vllm_serve.checkpoint import gap

# Some prompts see fewer keys than the top-k at first.
LENGTHS = (TOPK - 2, 60, 100)
TOKENS = 30


@pytest.mark.parametrize(
    ("family", "dtype"),
    [("DeepseekV32", "bfloat16"), ("GlmMoeDsa", "bfloat16"), ("DeepseekV32", "float16")],
)
def test_greedy_tokens_are_those_of_fp32_within_rounding(
    family: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Routing to experts is as discontinuous as selecting keys.
    make_checkpoint(tmp_path, family, **DENSE)
    steps = selections.record(monkeypatch)
    found = []
    with engine(tmp_path, dtype=dtype) as llm:
        for prompt in prompts(*LENGTHS):
            steps.clear()
            tokens = generate(llm, [prompt], TOKENS)[0]
            found.append((prompt, tokens, [torch.cat(each) for each in steps.values()]))
    rounded = load_reference(tmp_path, getattr(torch, dtype))
    exact = load_reference(tmp_path, getattr(torch, dtype)).float()
    for prompt, tokens, positions in found:
        logits, select = run(exact, [*prompt, *tokens[:-1]], positions)
        rounded_logits, rounded_select = run(rounded, [*prompt, *tokens[:-1]], positions)
        assert gap(logits[len(prompt) - 1 :], tokens) <= 2 * distance(rounded_logits, logits)
        moved = max(map(distance, rounded_select.scores, select.scores))
        assert select.missed() <= 2 * moved
