"""In 16 bits, and with index keys of 8, tokens and selected keys equal fp32's within rounding.

The rounding is the measured distance of transformers' model in 16 bits from fp32, of the logits and
of the index scores. If two values move by that much towards each other, twice as much may lie
between the value that was taken and the best one.
"""

from pathlib import Path
from typing import Any

import pytest
import selections
import torch
from checkpoints import load_reference, make_checkpoint, prompts
from engine import engine, generate
from selections import distance, run
from tiny_models import DENSE, TOPK
from torch import Tensor

from examples.vllm_serve.checkpoint import GAP, full_forward, gap

# Some prompts see fewer keys than the top-k at first.
LENGTHS = (TOPK - 2, 60, 100)
# An int8 value is at most 1/254 of its row's largest off, and so are queries and keys.
MOST_MISSED = 0.02


def serve(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    family: str,
    lengths: tuple[int, ...],
    new: int,
    **options: Any,
) -> list[tuple[list[int], list[int], list[Tensor]]]:
    """Return each prompt, its new tokens, and the positions that each layer selects."""
    # Routing to experts is as discontinuous as selecting keys, and uses topk as indexers do.
    make_checkpoint(folder, family, **DENSE)
    steps = selections.record(monkeypatch)
    found = []
    with engine(folder, **options) as llm:
        for prompt in prompts(*lengths):
            steps.clear()
            tokens = generate(llm, [prompt], new)[0]
            found.append((prompt, tokens, [torch.cat(each) for each in steps.values()]))
    return found


@pytest.mark.parametrize(
    ("family", "dtype"),
    [("DeepseekV32", "bfloat16"), ("GlmMoeDsa", "bfloat16"), ("DeepseekV32", "float16")],
)
def test_greedy_tokens_are_those_of_fp32_within_rounding(
    family: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = serve(tmp_path, monkeypatch, family, LENGTHS, 30, dtype=dtype)
    rounded = load_reference(tmp_path, getattr(torch, dtype))
    exact = load_reference(tmp_path, getattr(torch, dtype)).float()
    for prompt, tokens, positions in found:
        logits, select = run(exact, [*prompt, *tokens[:-1]], positions)
        rounded_logits, rounded_select = run(rounded, [*prompt, *tokens[:-1]], positions)
        assert gap(logits[len(prompt) - 1 :], tokens) <= 2 * distance(rounded_logits, logits)
        assert select.missed() <= 2 * max(map(distance, rounded_select.scores, select.scores))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_greedy_tokens_of_deepseek_v4_are_those_of_fp32_within_rounding(
    dtype: str, tmp_path: Path
) -> None:
    """The rounding is that of autocast: transformers' model in 16 bits stops on CPUs."""
    make_checkpoint(tmp_path, "DeepseekV4")
    with engine(tmp_path, dtype=dtype) as llm:
        found = generate(llm, prompts(60, 300), 20)
    exact = load_reference(tmp_path, getattr(torch, dtype)).float()
    for prompt, tokens in zip(prompts(60, 300), found, strict=True):
        logits = full_forward(exact, prompt, tokens)
        with torch.autocast("cpu", getattr(torch, dtype)):
            rounded = full_forward(exact, prompt, tokens).float()
        assert gap(logits, tokens) <= 2 * distance(rounded, logits)


@pytest.mark.parametrize("family", ["DeepseekV32", "GlmMoeDsa"])
def test_index_keys_of_8_bits(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are transformers' choice for the keys that are selected."""
    option = {"custom_pypto_index_cache": "int8"}
    found = serve(tmp_path, monkeypatch, family, (TOPK - 4, 100, 200), 12, additional_config=option)
    reference = load_reference(tmp_path)
    missed = []
    for prompt, tokens, positions in found:
        logits, select = run(reference, [*prompt, *tokens[:-1]], positions)
        assert gap(logits[len(prompt) - 1 :], tokens) < GAP
        missed.append(select.missed())
    # It is not the selection of exact scores, but close to it.
    assert 0 < max(missed) < MOST_MISSED, missed
