"""torch.compile makes one graph of a model without experts."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tiny_models import (
    CACHE,
    LATER,
    SIZES,
    WITH_ROWS,
    assert_close,
    make_cache,
    make_model,
    padding,
    prompt,
    under,
)
from torch import Tensor
from torch._dynamo.utils import counters

pytestmark = pytest.mark.usefixtures("no_grad")

ONE_LAYER = {"num_hidden_layers": 1, "first_k_dense_replace": 1}
TOKENS = 40
LEFT = padding(TOKENS, (0, TOKENS), (11, TOKENS))


@pytest.fixture(autouse=True)
def _no_graph_is_left() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def compiled(model: Any, **options: Any) -> Any:
    """Compile the model to one graph; aot_eager traces and checks it, and generates no code."""
    return torch.compile(model, fullgraph=True, **{"backend": "aot_eager", **options})


# Its text model is HY-V4's.
OTHERS = tuple(family for family in LATER + WITH_ROWS if family != "hy_v4_vl")
ONE_OF_LATER: dict[str, dict[str, Any]] = {
    "deepseek_v4": {
        "layer_types": ["compressed_sparse_attention"],
        "mlp_layer_types": ["moe"],
        "num_experts_per_tok": SIZES["n_routed_experts"],
    },
    "glm5_next": {"layer_types": ["indexed_attention"], "mlp_layer_types": ["dense"]},
    "hy_v4": {"mlp_layer_types": ["dense"], "indexer_types": ["full"]},
    "mistral_large4": {
        "mlp_layer_types": ["dense"],
        "indexer_types": ["full"],
        "no_rope_layers": [1],
        "kv_source_layers": [0],
    },
    "dots3_note_text": {"layer_types": ["indexed_attention"]},
}


# aot_eager also traces the fake kernels with their gradients.
@pytest.mark.parametrize(
    ("family", "backend"),
    [("deepseek_v32", "aot_eager"), *((family, "eager") for family in OTHERS)],
)
def test_prefill(family: str, backend: str) -> None:
    """DeepSeek-V4 runs transformers' attention, GLM-5.3 transformers' selection."""
    model = make_model(family, **{**ONE_LAYER, **ONE_OF_LATER.get(family, {})})

    def run(call: Any, mask: Tensor = LEFT) -> Tensor:
        logits: Tensor = call(prompt(2, TOKENS), attention_mask=mask, use_cache=False).logits
        return logits[mask.bool()]

    graph = compiled(model, backend=backend)
    assert_close(run(graph), under("eager", model, lambda: run(model)))
    if family == "deepseek_v32":
        # Only the running graph could notice this mask, and a graph cannot fall back.
        mask = LEFT.clone()
        mask[1, 20:25] = 0
        with pytest.raises(RuntimeError, match="zeros between ones"):
            run(graph, mask)


@pytest.mark.parametrize(
    ("kind", "options"),
    [("growing", {}), ("static", {"dynamic": True, "backend": "eager"})],
    ids=["growing", "static, with sizes that are symbols"],
)
def test_a_step_of_decoding(kind: str, options: dict[str, Any]) -> None:
    model, ids = make_model("deepseek_v32", **ONE_LAYER), prompt(2, TOKENS)

    def decode(kind: str, step: Any) -> Tensor:
        """Logits of the last token of 40: 38 in one go, one by ``step``, and one after that."""
        cache = make_cache(kind, model.config)
        for call, begin, end in ((model, 0, 38), (step, 38, 39), (model, 39, 40)):
            out = call(ids[:, begin:end], attention_mask=LEFT[:, :end], **{CACHE: cache})
        return out.logits

    wanted = under("eager", model, lambda: decode("dynamic", model))
    assert_close(decode(kind, compiled(model, **options)), wanted)


def test_one_graph_serves_every_number_of_tokens() -> None:
    model = make_model("glm_moe_dsa", **ONE_LAYER)
    call = compiled(model, backend="eager", dynamic=True)
    for tokens in (20, 33, 300):
        ids = prompt(2, tokens)
        wanted = under("eager", model, lambda ids=ids: model(ids).logits)
        assert_close(call(ids, use_cache=False).logits, wanted)
    assert counters["stats"]["unique_graphs"] == 1
