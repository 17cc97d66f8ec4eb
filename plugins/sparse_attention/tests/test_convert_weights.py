"""Released weights: through the op they equal a layer of transformers; unfit ones are refused."""

from dataclasses import asdict
from itertools import product
from types import SimpleNamespace
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the ops)
import pytest
import torch
from custom_pypto_sparse_attention import LayerWeights, conversion_options, convert_weights, to_nz
from custom_pypto_sparse_attention.weight_order import NZ_WEIGHTS
from torch import Tensor

fused = torch.ops.custom_pypto.npu_sparse_attention_pto

# More keys than top-k.
CACHED, TOKENS, BATCH, BLOCK = 2500, 2, 2, 128
SIZES = {"index_topk": 2048, "num_hidden_layers": 1, "dtype": torch.float32}


@torch.no_grad()
def step_of(model: str, rope: str, down: float = 1.0) -> SimpleNamespace:
    """Decode by transformers' own layer, in eager mode; ``down`` scales the inputs of RMS norms.

    The caches' rows before and after it are latents, their rope, index keys: [BATCH, CACHED, size].
    The values are the input of o_proj.
    """
    # Here, since environments that run other tests of this folder have no transformers.
    import tiny_models
    from transformers import AutoModel, DynamicCache

    changes: dict[str, Any] = {**SIZES, "attn_implementation": "eager"}
    if rope == "yarn":
        changes["rope_parameters"] = {**tiny_models.YARN, "mscale_all_dim": 0.8}
    config = tiny_models.make_config(model, **changes)
    made = AutoModel.from_config(config).eval()
    attention = made.layers[0].self_attn
    torch.manual_seed(0)
    for name, parameter in attention.named_parameters():
        values = torch.randn_like(parameter)
        if "norm" in name:
            values = values * 0.2 + (0 if name.endswith("bias") else 1)
        else:
            values = values * parameter.shape[1] ** -0.5
        parameter.copy_(values * (down if name.startswith(("q_a_proj", "kv_a_proj")) else 1))

    cache = DynamicCache(config=config)
    tiny_models.append(cache, config, CACHED, 0, BATCH)
    layer = cache.layers[0]
    before = [layer.keys[:, 0], layer.values[:, 0], layer.indexer_keys]
    x = torch.randn(BATCH, TOKENS, config.hidden_size)
    positions = torch.arange(CACHED, CACHED + TOKENS)
    cos, sin = made.rotary_emb(x, positions.expand(BATCH, -1))
    later = torch.arange(CACHED + TOKENS) > positions[:, None]
    mask = torch.zeros(BATCH, 1, *later.shape).masked_fill(later, torch.finfo(x.dtype).min)
    taken: list[Tensor] = []
    attention.o_proj.register_forward_pre_hook(lambda _, arguments: taken.append(arguments[0]))
    out = attention(x, (cos, sin), mask, cache)[0]
    after = [layer.keys[:, 0], layer.values[:, 0], layer.indexer_keys]
    step = SimpleNamespace(attention=attention, x=x, sin=sin, cos=cos, before=before, after=after)
    step.values, step.out = taken[0], out
    return step


def paged(rows: Tensor) -> Tensor:
    """[BATCH, CACHED, size] as blocks, with room for the new tokens."""
    blocks = -(-(CACHED + TOKENS) // BLOCK)
    padded = torch.nn.functional.pad(rows, (0, 0, 0, blocks * BLOCK - CACHED))
    return padded.view(BATCH * blocks, BLOCK, 1, -1)


def decode(step: SimpleNamespace, weights: LayerWeights) -> tuple[Tensor, list[Tensor]]:
    """The input of o_proj by the fused op, and the caches' rows after it."""
    caches = [paged(rows) for rows in step.before]
    table = torch.arange(len(caches[0]), dtype=torch.int32).view(BATCH, -1)
    slots = table[:, :1] * BLOCK + torch.arange(CACHED, CACHED + TOKENS, dtype=torch.int32)
    out = fused(
        x=step.x,
        **weights.mla,
        **weights.indexer,
        sin=step.sin,
        cos=step.cos,
        cache_index=slots,
        kv_cache=caches[0],
        kr_cache=caches[1],
        index_k_cache=caches[2],
        block_table=table,
        act_seqs=torch.full((BATCH,), CACHED + TOKENS),
    )
    values = torch.einsum("bsnl,nvl->bsnv", out, weights.w_uv).flatten(2)
    rows = [cache.view(BATCH, -1, cache.shape[-1])[:, : CACHED + TOKENS] for cache in caches]
    return values, rows


def distance(actual: Tensor, expected: Tensor) -> float:
    """The relative L2 error."""
    return ((actual - expected).norm() / expected.norm()).item()


LAYERS = [
    *product(("deepseek_v32", "glm_moe_dsa"), ("plain", "yarn"), (1.0,)),
    # The mean square of the norms' inputs is 1e-4: an epsilon of 1e-5 is 4 % more than one of 1e-6.
    ("deepseek_v32", "plain", 0.01),
]


@pytest.mark.parametrize(("model", "rope", "down"), LAYERS)
def test_equals_a_layer_of_transformers_and_continues_its_caches(
    model: str, rope: str, down: float
) -> None:
    step = step_of(model, rope, down)
    options: dict[str, Any] = conversion_options(step.attention.config)
    values, caches = decode(step, convert_weights(step.attention.state_dict(), **options))
    assert distance(values, step.values) <= 1e-5
    assert distance(step.attention.o_proj(values), step.out) <= 1e-5
    for rows, expected in zip(caches, step.after, strict=True):
        assert torch.equal(rows[:, :CACHED], expected[:, :CACHED])
        assert distance(rows[:, CACHED:], expected[:, CACHED:]) <= 1e-5
    if model == "deepseek_v32":
        options = {"heads": 4, "scale": step.attention.scaling, "index_rope": "half_split"}
        for config in (step.attention.config, step.attention.config.to_dict()):
            assert conversion_options(config) == pytest.approx(options)


# Without transformers, from here on.

HEADS, HIDDEN, QUERY, NOPE, ROPE = 2, 96, 48, 16, 8
VALUE, LATENT, INDEX_HEADS, INDEX = 24, 32, 16, 16
SHAPES = {
    "q_a_proj.weight": (QUERY, HIDDEN),
    "q_a_layernorm.weight": (QUERY,),
    "q_b_proj.weight": (HEADS * (NOPE + ROPE), QUERY),
    "kv_a_proj_with_mqa.weight": (LATENT + ROPE, HIDDEN),
    "kv_a_layernorm.weight": (LATENT,),
    "kv_b_proj.weight": (HEADS * (NOPE + VALUE), LATENT),
    "o_proj.weight": (HIDDEN, HEADS * VALUE),
    "indexer.wq_b.weight": (INDEX_HEADS * INDEX, QUERY),
    "indexer.wk.weight": (INDEX, HIDDEN),
    "indexer.k_norm.weight": (INDEX,),
    "indexer.k_norm.bias": (INDEX,),
    "indexer.weights_proj.weight": (INDEX_HEADS, HIDDEN),
}
SCALE = (NOPE + ROPE) ** -0.5


def state_of(dtype: torch.dtype, rope: int = ROPE) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    wider = {"q_b_proj.weight": HEADS * (NOPE + rope), "kv_a_proj_with_mqa.weight": LATENT + rope}
    return {
        name: torch.randn(wider.get(name, rows), *columns, generator=generator).to(dtype)
        for name, (rows, *columns) in SHAPES.items()
    }


def convert(state: dict[str, Tensor], **changes: Any) -> LayerWeights:
    options = {"heads": HEADS, "scale": SCALE, "index_rope": "half_split", **changes}
    return convert_weights(state, **options)


@pytest.mark.parametrize("rope", ["half_split", "interleaved"])
def test_neither_a_prefix_nor_the_default_device_changes_weights(rope: str) -> None:
    state = state_of(torch.float32)
    prefixed = {f"model.layers.0.self_attn.{name}": weight for name, weight in state.items()}
    expected = asdict(convert(state, index_rope=rope))
    with torch.device("meta"):
        found = convert(prefixed, index_rope=rope, prefix="model.layers.0.self_attn.")
    for name, weight in asdict(found).items():
        assert torch.equal(weight, expected[name])


def test_results_are_copies_that_need_no_gradient() -> None:
    state = state_of(torch.float32)
    before = {name: weight.clone() for name, weight in state.items()}
    parameters = {name: torch.nn.Parameter(weight) for name, weight in state.items()}
    for weight in asdict(convert(parameters)).values():
        assert not weight.requires_grad
        weight.zero_()
    assert all(torch.equal(parameters[name], before[name]) for name in before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bits_lose_nothing_but_in_w_uq_qr(dtype: torch.dtype) -> None:
    state = state_of(dtype)
    weights = convert(state)
    down = state["kv_a_proj_with_mqa.weight"].T
    # 16 = 4^2 is the power of four next to 1e-5 / 1e-6.
    assert torch.equal(weights.w_dq, state["q_a_proj.weight"].T * 4)
    assert torch.equal(weights.w_dkv_kr[:, :LATENT], down[:, :LATENT] * 4)
    assert torch.equal(weights.w_dkv_kr[:, LATENT:], down[:, LATENT:])
    folded = state["q_b_proj.weight"].T.double() * (SCALE * (LATENT + ROPE) ** 0.5)
    assert torch.equal(weights.w_uq_qr, folded.float().to(dtype))
    assert all(each.dtype == dtype and each.is_contiguous() for each in asdict(weights).values())


def test_the_ops_own_conventions_change_no_weight() -> None:
    state = state_of(torch.bfloat16)
    own = {"scale": (LATENT + ROPE) ** -0.5, "index_rope": "interleaved", "rms_epsilon": 1e-5}
    weights = convert(state, **own)
    sources = "q_a_proj q_b_proj kv_a_proj_with_mqa indexer.wq_b indexer.wk indexer.weights_proj"
    for name, source in zip(NZ_WEIGHTS, sources.split(), strict=True):
        assert torch.equal(getattr(weights, name), state[f"{source}.weight"].T)


def test_norms_and_the_indexers_weights_may_be_fp32() -> None:
    state = state_of(torch.bfloat16)
    wide = ("q_a_layernorm.weight", "indexer.k_norm.bias", "indexer.weights_proj.weight")
    weights = convert({**state, **{name: state[name].float() for name in wide}})
    assert weights.gamma_cq.dtype == weights.in_beta_k.dtype == torch.float32
    assert weights.w_idx_proj.dtype == torch.bfloat16


def test_nz_order_is_that_of_the_ops_and_changes_no_other_weight() -> None:
    state = state_of(torch.bfloat16, rope=16)
    plain, nz = asdict(convert(state)), asdict(convert(state, nz=True))
    for name, weight in plain.items():
        assert torch.equal(nz[name], to_nz(weight) if name in NZ_WEIGHTS else weight)


BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn
Q_A, Q_B, KV_B = "q_a_proj.weight", "q_b_proj.weight", "kv_b_proj.weight"
BIAS, STATE = "q_a_proj.bias", state_of(BF16)
NO_INDEXER = dict.fromkeys(name for name in SHAPES if name.startswith("indexer."))
PREFIXED = {f"layer.{name}": weight for name, weight in STATE.items()}
# A state's changes, None for a weight that is not there, and a part of the error.
STATES: dict[str, tuple[dict[str, Tensor | None], str]] = {
    "missing names": ({Q_A: None, Q_B: None}, f"has no '{Q_A}', '{Q_B}'$"),
    "another prefix": (dict.fromkeys(SHAPES) | PREFIXED, "pass prefix='layer.'$"),
    "no indexer": (NO_INDEXER, "a layer that takes another one's selection has no indexer of its"),
    "scales of quantised weights": (
        {Q_B: STATE[Q_B].to(FP8), f"{Q_B}_scale_inv": torch.ones(1, 1)},
        f"'{Q_B}' is quantised: dequantise it first, .*'{Q_B}_scale_inv'",
    ),
    "no scales": ({Q_A: STATE[Q_A].to(FP8)}, f"'{Q_A}' must be .*got torch.float8_e4m3fn; deq"),
    "mixed dtypes": ({KV_B: STATE[KV_B].float()}, "must be torch.bfloat16, as .*got torch.float32"),
    "a bias": ({BIAS: torch.zeros(QUERY, dtype=BF16)}, f"has '{BIAS}', but the ops add no bias"),
    "a wrong rank": ({Q_B: STATE[Q_B][None]}, r"must have the shape \[\*, 48\], got \[1, 48, 48\]"),
    # If two tensors do not fit each other, the error names the one that is read later.
    **{name: ({name: STATE[name][:-1]}, "(must have|must be)") for name in SHAPES},
}
OPTIONS: list[tuple[dict[str, Any], torch.dtype, str]] = [
    ({"heads": 1}, BF16, r"'o_proj.weight' must have the shape \[96, 40\], got \[96, 48\]"),
    ({"scale": float("nan")}, BF16, "scale' must be positive, got nan"),
    ({"rms_epsilon": -1}, BF16, "rms_epsilon' must be positive, got -1"),
    ({"index_rope": "neox"}, BF16, "must be 'half_split' or 'interleaved', got 'neox'"),
    ({"nz": True}, torch.float32, "nz' needs weights of bfloat16 or float16, got torch.float32"),
    ({"nz": True}, BF16, "nz' needs a multiple of 16 columns in w_dkv_kr, got 40"),
]


@pytest.mark.parametrize("case", STATES)
def test_weights_that_do_not_fit_are_refused(case: str) -> None:
    changes, text = STATES[case]
    state = {name: each for name, each in (STATE | changes).items() if each is not None}
    with pytest.raises(ValueError, match=f"^convert_weights: argument '.*{text}"):
        convert(state)


@pytest.mark.parametrize(("options", "dtype", "text"), OPTIONS)
def test_options_that_do_not_fit_are_refused(
    options: dict[str, Any], dtype: torch.dtype, text: str
) -> None:
    with pytest.raises(ValueError, match=f"^convert_weights: argument '.*{text}"):
        convert(state_of(dtype), **options)


CONFIG: dict[str, Any] = {
    "model_type": "deepseek_v32",
    "num_attention_heads": 128,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
}
# As in a config.json of before transformers 5.
YARN = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}


@pytest.mark.parametrize(
    ("change", "option", "value"),
    [
        ({}, "index_rope", "half_split"),
        ({"model_type": "glm_moe_dsa"}, "index_rope", "interleaved"),
        # Nothing is extended.
        ({"rope_scaling": {**YARN, "mscale_all_dim": 0}}, "scale", 192**-0.5),
        ({"rope_scaling": {**YARN, "type": "default"}}, "scale", 192**-0.5),
        ({"rope_scaling": {**YARN, "factor": 1}}, "scale", 192**-0.5),
    ],
)
def test_a_config_gives_an_option(change: dict[str, Any], option: str, value: Any) -> None:
    assert conversion_options({**CONFIG, **change})[option] == value


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({**CONFIG, "model_type": "llama"}, "model_type of 'deepseek_v32' or .*got 'llama'"),
        ({"model_type": "deepseek_v32"}, "has no qk_nope_head_dim"),
        ({**CONFIG, "rope_scaling": {**YARN, "factor": None}}, "but no factor"),
    ],
)
def test_bad_configs_are_refused(config: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=f"^conversion_options: argument 'config' .*{match}"):
        conversion_options(config)
