"""What a release changed of transformers' private parts is found at import; then sdpa runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tiny_models
from custom_pypto_transformers import growing_cache, requirements, served

Difference = Callable[[], str | None]


def difference_of_layers(module: str, rotate: str) -> str | None:
    prefix = tiny_models.PREFIXES[module.split(".")[1]]
    return served._difference_of_layers(f"transformers.{module}", prefix, rotate)


# What is compared, and by which check.
PARTS: dict[tuple[str, str], Difference] = {
    **dict.fromkeys(
        [
            ("masking_utils", "sdpa_mask"),
            ("masking_utils", "causal_mask_function"),
            ("integrations.sdpa_attention", "sdpa_attention_forward"),
            ("cache_utils", "Cache.update_indexer"),
        ],
        served._difference_of_masks_and_caches,
    ),
    **{
        (module := f"models.{folder}.modeling_{folder}", path): partial(
            difference_of_layers, module, rotate
        )
        for folder, prefix, rotate in served.FAMILIES
        for path in (
            *(rotate, "eager_attention_forward", f"{prefix}Attention.expand_kv"),
            *(f"{prefix}Attention.forward", f"{prefix}Attention.__init__"),
            *(f"{prefix}Indexer.forward", f"{prefix}Indexer.__init__"),
            *(
                f"{prefix}PreTrainedModel.{each}"
                for each in ("post_init", "set_attn_implementation")
            ),
        )
    },
    **{
        # A test may not fill the cache of the function.
        ("cache_utils", f"DynamicIndexedLayer.{each}"): growing_cache._difference.__wrapped__
        for each in (
            *("update", "update_indexer", "lazy_initialization", "lazy_initialization_indexer"),
            "__init__",
        )
    },
}


def other(self: Any, *, unknown: Any) -> None:
    """Take what no function of transformers takes."""


@pytest.mark.parametrize(("module", "path"), PARTS)
def test_a_part_that_is_missing_or_another_is_named(
    monkeypatch: pytest.MonkeyPatch, module: str, path: str
) -> None:
    difference = PARTS[module, path]
    assert difference() is None
    *outer, name = path.split(".")
    owner = import_module(f"transformers.{module}")
    for each in outer:
        owner = getattr(owner, each)
    monkeypatch.setattr(owner, name, other)
    sentence = difference()
    assert sentence is not None
    assert path.removesuffix(".__init__") in sentence
    assert sentence.endswith(f"pip install 'transformers<={requirements.TESTED}'")
    monkeypatch.delattr(owner, name)
    if not hasattr(owner, name):
        assert f"has no transformers.{module}.{path}" in str(difference())


CHANGE = """
import sys, warnings
import torch
from transformers import DynamicCache
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as module

own = module.DeepseekV32Indexer.forward
if sys.argv[1] == "indexer":
    def forward(self, *args, new=None, **kwargs):
        return own(self, *args, **kwargs)
    module.DeepseekV32Indexer.forward = forward
else:
    import transformers.cache_utils as caches
    update = caches.DynamicIndexedLayer.update_indexer
    caches.DynamicIndexedLayer.update_indexer = lambda self, keys: update(self, keys)

import custom_pypto_transformers
from custom_pypto_transformers import GrowingCache
from tiny_models import CACHE, make_model, prompt

def step(model, kind=DynamicCache):
    with torch.no_grad():
        return model(prompt(1, 40), **{CACHE: kind(config=model.config)}).logits

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = make_model("deepseek_v32")
    ours = [step(model, GrowingCache), step(model, GrowingCache)]
    model.set_attn_implementation("custom_pypto")
assert torch.equal(*ours)
theirs = step(make_model("deepseek_v32", implementation="sdpa"))
print(model.config._attn_implementation, torch.equal(ours[0], theirs))
print(type(GrowingCache(model.config).layers[0]).__name__)
(text,) = [str(each.message) for each in caught if "custom_pypto" in each.filename]
print(text)
glm = make_model("glm_moe_dsa")
assert step(glm).isfinite().all()
assert glm.config._attn_implementation == "custom_pypto"
"""


def run_after(change: str, code: str = CHANGE) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", code, change]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_changed_indexer_leaves_its_family_to_transformers_with_one_warning() -> None:
    model, layer, text = run_after("indexer")
    assert (model, layer) == ("sdpa True", "GrowingIndexedLayer")
    assert text.startswith(
        "attn_implementation='custom_pypto' runs transformers' own attention, which is slower:"
        " transformers "
    )
    assert " has another DeepseekV32Indexer.forward(self, *args, new=None, **kwargs); " in text


RENAMED = """
import warnings
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as module

del module.DeepseekV32PreTrainedModel
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import custom_pypto_transformers
(text,) = [str(each.message) for each in caught if "custom_pypto" in each.filename]
print(text)
from tiny_models import make_model
print(make_model("glm_moe_dsa").config._attn_implementation)
print(make_model("deepseek_v32", implementation="sdpa").config._attn_implementation)
"""


def test_a_family_without_its_base_class_is_left_out_with_one_warning() -> None:
    text, served, own = run_after("", RENAMED)
    assert text.startswith("DeepseekV32 cannot have attn_implementation='custom_pypto': transform")
    assert " has no transformers.models.deepseek_v32.modeling_deepseek_v32.DeepseekV32Pre" in text
    assert (served, own) == ("custom_pypto", "sdpa")


def test_a_changed_cache_layer_leaves_the_cache_to_transformers_with_one_warning() -> None:
    model, layer, text = run_after("cache")
    assert (model, layer) == ("custom_pypto False", "DynamicIndexedLayer")
    assert text.startswith("GrowingCache copies all keys each step, as DynamicCache does: ")
    assert " has another DynamicIndexedLayer.update_indexer(self, keys); " in text
