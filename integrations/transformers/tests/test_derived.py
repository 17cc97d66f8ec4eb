"""Models that transformers derives from the served ones are served, or left alone."""

from __future__ import annotations

from typing import Any

import pytest
import tiny_models
import torch
import transformers
from tiny_models import assert_close_to_eager, assert_tokens_of_eager, padding, prompt
from transformers import AutoModel

TOKENS = 40


def test_axk2_generates_the_tokens_of_eager() -> None:
    model = tiny_models.make_model("axk2")
    mask = padding(TOKENS, (0, TOKENS), (9, TOKENS))
    options = {"attention_mask": mask, "max_new_tokens": 8}
    assert_tokens_of_eager(model, lambda: model.generate(prompt(2, TOKENS), **options))


@pytest.mark.usefixtures("no_grad")
def test_axk2_has_the_logits_of_eager() -> None:
    model = tiny_models.make_model("axk2")
    assert_close_to_eager(model, lambda: model(prompt(1, TOKENS)).logits)


# Their layers compute something else: sinks, gates, shared or pooled keys, layers of other kinds.
OTHERS: dict[str, dict[str, Any]] = {
    "HYV4": {},
    "MistralLarge4Text": {},
    "Glm5NextText": {
        "qk_rope_head_dim": 0,
        "n_group": 1,
        "linear_head_dim": 16,
        "linear_num_heads": 4,
        "num_hidden_layers": 4,
    },
    "Dots3NoteText": {"rope_parameters": None},
}


def make(prefix: str, implementation: str) -> Any:
    sizes = {**tiny_models.SIZES, **OTHERS[prefix]}
    config = getattr(transformers, f"{prefix}Config")(**sizes)
    torch.manual_seed(0)
    return AutoModel.from_config(config, attn_implementation=implementation).eval()


@pytest.mark.parametrize("prefix", OTHERS)
def test_other_families_are_refused(prefix: str) -> None:
    model = make(prefix, "custom_pypto")
    message = "attn_implementation='custom_pypto'.*for any other model set 'sdpa'"
    with torch.no_grad(), pytest.raises((RuntimeError, ValueError), match=message):
        model(prompt(1, TOKENS))


@pytest.mark.parametrize("prefix", OTHERS)
def test_other_families_keep_the_classes_of_transformers(prefix: str) -> None:
    ours = {
        type(module).__name__
        for module in make(prefix, "eager").modules()
        if not type(module).__module__.startswith(("transformers.", "torch."))
    }
    assert ours == set()
