"""What a release changed of transformers' private parts is found at import; then sdpa runs."""

import pkgutil
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_transformers import growing_cache, linear, requirements, served
from custom_pypto_transformers.parts import Parts
from fork_server import ForkServer

Difference = Callable[[], str | None]
DIFFERENCES: list[Difference] = [
    linear._difference_of_experts,
    served._difference_of_masks_and_caches,
    # A test may not fill the cache of the function.
    growing_cache._difference.__wrapped__,
    *(
        partial(served.difference_of, family)
        for family in served.FAMILIES
        if find_spec(family.module.rpartition(".")[0]) is not None
    ),
]


def parts_of(difference: Difference) -> list[tuple[Difference, str]]:
    """List the paths of all that is compared."""
    paths: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        find = Parts.find

        def noted(self: Parts, path: str) -> Any:
            paths.append(self.whole_name(path))
            return find(self, path)

        patch.setattr(Parts, "find", noted)
        assert difference() is None
    return [(difference, path) for path in paths]


PARTS = [part for difference in DIFFERENCES for part in parts_of(difference)]
assert min(len(parts_of(each)) for each in DIFFERENCES) >= 2


def other(self: Any, *, unknown: Any) -> None:
    """Take what no function of transformers takes."""


@pytest.mark.parametrize(("difference", "path"), PARTS)
def test_a_part_that_is_missing_or_another_is_named(
    monkeypatch: pytest.MonkeyPatch, difference: Difference, path: str
) -> None:
    owner, name = pkgutil.resolve_name(path.rpartition(".")[0]), path.rpartition(".")[2]
    if isinstance(getattr(owner, name), type):
        owner, name = getattr(owner, name), "__init__"
    monkeypatch.setattr(owner, name, other)
    sentence = difference()
    assert sentence is not None
    assert path.removesuffix(".__init__").rpartition(".")[2] in sentence
    assert sentence.endswith(f"was tested: {requirements.INSTALL}")
    monkeypatch.delattr(owner, name)
    if not hasattr(owner, name):
        assert f"has no {path}" in str(difference())


CHANGES = """
import warnings
import torch
import transformers.cache_utils as caches
from transformers import DynamicCache
from transformers.models.axk2 import modeling_axk2
from transformers.models.deepseek_v32 import modeling_deepseek_v32 as module

forward = module.DeepseekV32Indexer.forward
update = caches.DynamicIndexedLayer.update_indexer
module.DeepseekV32Indexer.forward = lambda self, *args, new=None, **kwargs: forward(
    self, *args, **kwargs)
caches.DynamicIndexedLayer.update_indexer = lambda self, keys: update(self, keys)
del modeling_axk2.AXK2PreTrainedModel

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from custom_pypto_transformers import GrowingCache
    from tiny_models import CACHE, make_model, prompt

    def step(model, kind=DynamicCache):
        with torch.no_grad():
            return model(prompt(1, 40), **{CACHE: kind(config=model.config)}).logits

    model = make_model("deepseek_v32")
    ours = [step(model, GrowingCache), step(model, GrowingCache)]
    model.set_attn_implementation("custom_pypto")
assert torch.equal(*ours)
theirs = step(make_model("deepseek_v32", implementation="sdpa"))
print(model.config._attn_implementation, torch.equal(ours[0], theirs))
glm = make_model("glm_moe_dsa")
assert step(glm).isfinite().all()
print(glm.config._attn_implementation, type(GrowingCache(model.config).layers[0]).__name__)
print(make_model("axk2", implementation="sdpa").config._attn_implementation)
for each in caught:
    if "custom_pypto" in each.filename:
        print(each.message)
"""


def test_what_changed_is_left_to_transformers_with_one_warning_each(server: ForkServer) -> None:
    """A family with another indexer, one without its base class, and the layers of caches."""
    done = server.run(CHANGES, [Path(each) for each in sys.path], {})
    assert done.returncode == 0, done.stderr
    v32, others, axk2, base, indexer, layer = done.stdout.splitlines()
    assert (v32, others, axk2) == ("sdpa True", "custom_pypto DynamicIndexedLayer", "sdpa")
    assert base.startswith("AXK2 cannot have attn_implementation='custom_pypto': transformers ")
    assert " has no transformers.models.axk2.modeling_axk2.AXK2PreTrainedModel" in base
    slower = "attn_implementation='custom_pypto' runs transformers' own attention, which is slower:"
    assert indexer.startswith(f"{slower} transformers ")
    assert " has another DeepseekV32Indexer.forward(self, *args, new=None, **kwargs); " in indexer
    assert layer.startswith("GrowingCache copies all keys each step, as DynamicCache does: ")
    assert " has another DynamicIndexedLayer.update_indexer(self, keys); " in layer
