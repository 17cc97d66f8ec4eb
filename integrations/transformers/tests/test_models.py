"""Models are made, saved, copied and switched as any other; which ones are served."""

import copy
import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tiny_models
import torch
from tiny_models import OpCalls, assert_close, assert_tokens_of_eager, padding, prompt, under
from torch import Tensor
from transformers import AutoModel, AutoModelForCausalLM

TOKENS = 40


def logits(model: Any) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(prompt(1, TOKENS)).logits
    return found


@pytest.fixture(scope="module")
def saved(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    model.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("implementation", ["custom_pypto", None])
def test_a_saved_model_computes_the_same_and_names_no_implementation(
    model: Any, saved: Path, implementation: str | None
) -> None:
    """A model is loaded with sdpa by default."""
    config = json.loads((saved / "config.json").read_text())
    assert config["architectures"]
    assert "custom_pypto" not in str(config)
    loaded = AutoModelForCausalLM.from_pretrained(saved, attn_implementation=implementation).eval()
    assert loaded.config._attn_implementation == (implementation or "sdpa")
    wanted = under(implementation or "sdpa", model, lambda: logits(model))
    assert torch.equal(logits(loaded), wanted)


def test_the_model_without_a_head(model: Any, saved: Path) -> None:
    loaded = AutoModel.from_pretrained(saved, attn_implementation="custom_pypto").eval()
    with torch.no_grad():
        ours = loaded(prompt(1, TOKENS)).last_hidden_state
        last = model(prompt(1, TOKENS), output_hidden_states=True).hidden_states[-1]
    assert torch.equal(ours, last)


def pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


ALL = tiny_models.FAMILIES + tiny_models.LATER + tiny_models.WITH_ROWS
COPIES = [*product(ALL, [copy.deepcopy]), *product(tiny_models.FAMILIES, [pickled])]


@pytest.mark.parametrize(("family", "copied"), COPIES)
def test_a_copy_computes_the_same(family: str, copied: Callable[[Any], Any]) -> None:
    """A new model: transformers cannot pickle hooks of recorded outputs and, in 5.21, rotations."""
    model = tiny_models.make_model(family)
    other = copied(model)
    assert torch.equal(logits(other), logits(model))
    other.set_attn_implementation("eager")
    assert model.config._attn_implementation == "custom_pypto"


def test_several_models_in_threads() -> None:
    models = [tiny_models.make_model(family, seed=4) for family in tiny_models.FAMILIES * 2]
    wanted = [logits(model) for model in models]
    with ThreadPoolExecutor(len(models)) as threads:
        found = threads.map(lambda model: [logits(model) for _ in range(5)], models)
    for some, one in zip(found, wanted, strict=True):
        assert [float((each - one).abs().max()) for each in some] == [0.0] * len(some)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_models_of_one_configuration_are_switched_together(family: str) -> None:
    """transformers holds the implementation in the configuration."""
    config = tiny_models.make_config(family)
    first, second = (AutoModelForCausalLM.from_config(config).eval() for _ in range(2))
    wanted = logits(first)
    second.set_attn_implementation("custom_pypto")
    with OpCalls() as ops:
        assert_close(logits(first), wanted)
    assert ops.calls
    first.set_attn_implementation("eager")
    packages = {type(module).__module__.partition(".")[0] for module in second.modules()}
    assert packages == {"torch", "transformers"}


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_forward_that_was_wrapped_before_a_switch_is_the_new_one(family: str) -> None:
    """accelerate's hooks call the forward that the module had when they were added."""
    model = tiny_models.make_model(family, implementation="eager")
    wanted = logits(model)
    for module in model.modules():
        module._old_forward = module.forward
        module.forward = lambda *args, _module=module, **kwargs: _module._old_forward(
            *args, **kwargs
        )
    model.set_attn_implementation("custom_pypto")
    with pytest.warns(UserWarning, match="kv_b_proj"):
        assert_close(logits(model), wanted)
    model.set_attn_implementation("eager")
    assert torch.equal(logits(model), wanted)


def test_an_implementation_that_was_set_in_the_configuration_alone_is_refused() -> None:
    model = tiny_models.make_model("deepseek_v32", implementation="sdpa")
    model.config._attn_implementation = "custom_pypto"
    with pytest.raises(RuntimeError, match="switched by set_attn_implementation or made with it"):
        logits(model)
    model.set_attn_implementation("custom_pypto")
    assert logits(model).isfinite().all()


def test_a_model_that_is_not_served_is_refused() -> None:
    with pytest.raises(ValueError, match="does not serve this LlamaAttention"):
        logits(tiny_models.make_llama("custom_pypto"))


def test_axk2_generates_the_tokens_of_eager() -> None:
    model = tiny_models.make_model("axk2")
    options = {"attention_mask": padding(TOKENS, (0, TOKENS), (9, TOKENS)), "max_new_tokens": 8}
    assert_tokens_of_eager(model, lambda: model.generate(prompt(2, TOKENS), **options))


@pytest.mark.skipif("mistral_large4" not in tiny_models.LATER, reason="a release without it")
@pytest.mark.usefixtures("no_grad")
def test_a_vision_tower_runs_transformers_own_attention() -> None:
    model = tiny_models.make_model("mistral_large4")
    side = 2 * model.config.vision_config.patch_size

    def see() -> Tensor:
        tower, image = model.model.vision_tower, torch.linspace(-1, 1, 3 * side**2)
        sizes = torch.tensor([[side, side]])
        return tower(image.view(1, 3, side, side), image_sizes=sizes).last_hidden_state

    assert_close(see(), under("eager", model, see))
