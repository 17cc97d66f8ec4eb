"""A layer has the parameters of the forward that it replaces; an unknown forward is kept."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import pytest

PREFIXES = {"DeepseekV32Indexer": "deepseek_v32", "GlmMoeDsaIndexer": "glm_moe_dsa"}


@pytest.fixture
def layers() -> Iterator[Any]:
    """Import the file anew: a layer is made once."""
    name = "custom_pypto_kernels.layers.lightning_indexer"
    sys.modules.pop(name, None)
    yield importlib.import_module(name)
    sys.modules.pop(name, None)


def model_of(name: str) -> Any:
    return importlib.import_module(
        f"transformers.models.{PREFIXES[name]}.modeling_{PREFIXES[name]}"
    )


@pytest.mark.parametrize("name", PREFIXES)
def test_a_layer_has_the_parameters_of_transformers(layers: Any, name: str) -> None:
    own = getattr(model_of(name), name).forward
    forward = getattr(layers, name).forward
    assert forward is not own
    assert inspect.signature(forward) == inspect.signature(own)


def other(self: Any, hidden_states: Any, more: Any) -> None: ...


def hidden(*args: Any, **kwargs: Any) -> None: ...


@pytest.mark.parametrize(
    ("forward", "names"), [(other, "self, hidden_states, more"), (hidden, "args, kwargs")]
)
@pytest.mark.parametrize("name", PREFIXES)
def test_an_unknown_forward_stays_with_one_sentence(
    layers: Any, monkeypatch: pytest.MonkeyPatch, name: str, forward: Any, names: str
) -> None:
    monkeypatch.setattr(getattr(model_of(name), name), "forward", forward)
    with pytest.warns(UserWarning, match=f"{name} runs.* takes {names}, which"):
        layer = getattr(layers, name)
    assert layer.forward is forward


def test_an_unknown_rotation_stays_with_one_sentence(
    layers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = model_of("DeepseekV32Indexer")
    monkeypatch.setattr(module, "apply_rotary_pos_emb", lambda q, k, angles: None)
    with pytest.warns(UserWarning, match="takes q, k, angles, which is not known"):
        layer = layers.DeepseekV32Indexer
    assert layer.forward is module.DeepseekV32Indexer.forward


def test_another_layer_is_not_there(layers: Any) -> None:
    with pytest.raises(AttributeError, match="has no layer LlamaAttention"):
        layers.LlamaAttention  # noqa: B018
