"""Engines' calls, with another namespace, return the results that the ops' references define."""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from operator import attrgetter
from typing import Any, NamedTuple

import custom_pypto.core
import custom_pypto_serving as serving
import pytest
import torch
from calls import CALLS, Call
from custom_pypto_compressor import norm_and_rotate
from torch import Tensor

HEADS, LATENT, ROPE, INDEX_HEADS, SIZE, TOP_K, PAGES = 4, 32, 16, 64, 128, 8, 6
QUANT = "npu_quant_lightning_indexer"
ATTENTION = "npu_sparse_flash_attention"
SHARED_KV = "npu_sparse_flash_mla"
QUANT_V2 = "npu_quant_lightning_indexer_v2"
VLLM_QUANT = "npu_vllm_quant_lightning_indexer"
LSE = "return_softmax_lse"


class Batch(NamedTuple):
    """The integers of a batch, as engines fill them; pages hold 16 tokens."""

    tokens: int
    """Rows of the hidden states, padding included."""
    query_ends: Sequence[int]
    lengths: Sequence[int]
    table: Sequence[Sequence[int]]

    def arguments(self) -> dict[str, Any]:
        """What the calls of both ops have in common."""
        return {
            "actual_seq_lengths_query": torch.tensor(self.query_ends, dtype=torch.int32),
            "block_table": torch.tensor(self.table, dtype=torch.int32),
            "layout_query": "TND",
            "sparse_mode": 3,
        }


MIXED = Batch(4, [3, 4], [37, 5], [[5, 0, 3], [2, 0, 0]])
BATCHES = {
    "prefill and decode": MIXED,
    # Hidden states are padded to a multiple of the ranks, or to the size of a captured graph.
    "padded rows": MIXED._replace(tokens=7),
    # A captured graph has more requests: those that are missing have no tokens, no keys, and a row
    # of zeros in the table.
    "dummy requests": Batch(5, [3, 4, 4, 4], [37, 5, 0, 0], [*MIXED.table, [0, 0, 0], [0, 0, 0]]),
    # A run that captures a graph has a token a request, and no keys.
    "dummy run": Batch(4, [1, 2, 3, 4], [0, 0, 0, 0], [[0, 0, 0]] * 4),
    # Context parallelism gave this rank rows of padding only.
    "rank without tokens": Batch(2, [0, 0], [0, 0], MIXED.table),
    # It gave this rank the last of a request's tokens, and none of another's.
    "rank with few tokens": Batch(4, [2, 2], [37, 0], MIXED.table),
}


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def indexer_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    return batch.arguments() | {
        "query": normal(1, batch.tokens, INDEX_HEADS, SIZE),
        "key": normal(2, PAGES, 16, 1, SIZE),
        "weights": normal(3, batch.tokens, INDEX_HEADS),
        "actual_seq_lengths_key": torch.tensor(batch.lengths, dtype=torch.int32),
        "layout_key": "PA_BSND",
        "sparse_count": TOP_K,
    }


def quantised_arguments(batch: Batch = MIXED, dtype: torch.dtype = torch.int8) -> dict[str, Any]:
    """As vllm-ascend has them: int8 on Atlas A2 and A3, float8 with scales of float32 on A5."""
    is_int8, arguments = dtype == torch.int8, indexer_arguments(batch)
    for name in ("query", "key"):
        values = arguments[name].float()
        scale = values.abs().amax(-1) / (127 if is_int8 else 448)
        scale = scale.half() if is_int8 else scale
        values = values / scale.float()[..., None]
        arguments[name] = (values.round().clamp(-127, 127) if is_int8 else values).to(dtype)
        arguments[f"{name}_dequant_scale"] = scale
        arguments[f"{name}_quant_mode"] = 0
    return arguments | ({"weights": arguments["weights"].half()} if is_int8 else {})


float8_arguments = partial(quantised_arguments, dtype=torch.float8_e4m3fn)


def attention_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    latents = normal(4, PAGES, 16, 1, LATENT)
    indices = reference("npu_lightning_indexer_pto")(**indexer_arguments(batch))
    # Where an indexer on an NPU writes nothing, there is anything.
    indices[batch.query_ends[-1] :] = 2**31 - 1
    return batch.arguments() | {
        "query": normal(5, batch.tokens, HEADS, LATENT),
        "key": latents,
        "value": latents,
        "sparse_indices": indices,
        "scale_value": 0.125,
        "sparse_block_size": 1,
        "actual_seq_lengths_kv": torch.tensor(batch.lengths, dtype=torch.int32),
        "query_rope": normal(6, batch.tokens, HEADS, ROPE),
        "key_rope": normal(7, PAGES, 16, 1, ROPE),
        "layout_kv": "PA_BSND",
        "attention_mode": 2,
        LSE: False,
    }


def rank_attention_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    """Where ranks share a request's keys: this rank's positions, and parts to merge by."""
    arguments = attention_arguments(batch) | {"sparse_mode": 0, LSE: True}
    arguments["sparse_indices"] = arguments["sparse_indices"].where(
        arguments["sparse_indices"] % 2 == 0, -1
    )
    return arguments


def shared_kv_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    """Pages of a window and of rows for 4 tokens each."""
    given, lengths = batch.arguments(), torch.tensor(batch.lengths, dtype=torch.int32)
    starts = torch.tensor([0, *batch.query_ends], dtype=torch.int32)
    options = {
        "cu_seqlens_q": starts,
        "cu_seqlens_ori_kv": starts,
        "seqused_kv": lengths,
        "cmp_ratio": 4,
        "ori_mask_mode": 4,
        "ori_win_left": 7,
        "ori_win_right": 0,
        "layout_q": "TND",
        "layout_kv": "PA_ND",
    }
    sizes = {"max_seqlen_kv": max(batch.lengths)}
    metadata = serving.npu_sparse_attn_sharedkv_metadata(HEADS, 1, LATENT, **options, **sizes)
    return options | {
        "q": normal(1, batch.tokens, HEADS, LATENT),
        "ori_kv": normal(2, PAGES, 16, 1, LATENT),
        "cmp_kv": normal(3, PAGES, 16, 1, LATENT),
        "ori_block_table": given["block_table"],
        "cmp_block_table": given["block_table"],
        "sinks": normal(4, HEADS).float(),
        "metadata": metadata,
        "softmax_scale": LATENT**-0.5,
    }


def streams_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    """What a layer's hyper-connections take before it and, of another step, after it."""
    return {
        "x": normal(1, batch.tokens, 4, LATENT),
        "hc_fn": normal(2, 24, 4 * LATENT).float() / 16,
        "hc_scale": normal(3, 3).float(),
        "hc_base": normal(4, 24).float(),
        "hc_mult": 4,
        "hc_sinkhorn_iters": 5,
        "norm_eps": 1e-6,
        "hc_eps": 1e-3,
    }


def layer_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    return {
        "x": normal(5, batch.tokens, LATENT),
        "residual": normal(1, batch.tokens, 4, LATENT),
        "post": normal(2, batch.tokens, 4).float(),
        "comb": normal(3, batch.tokens, 4, 4).float(),
    }


def compressed_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    """Quantised keys for 4 tokens each."""
    return quantised_arguments(batch) | {
        "metadata": torch.zeros(1024, dtype=torch.int32),
        "cmp_ratio": 4,
        "return_value": False,
    }


def compressor_arguments(batch: Batch = MIXED) -> dict[str, Any]:
    bounds = torch.tensor([0, *batch.query_ends], dtype=torch.int32)
    starts = (torch.tensor(batch.lengths, dtype=torch.int32) - bounds.diff()).clamp(min=0)
    rows = min(batch.tokens, batch.tokens // 4 + len(batch.lengths))
    return {
        "x": normal(1, batch.tokens, SIZE),
        "wkv": normal(2, 2 * LATENT, SIZE) / 8,
        "wgate": normal(3, 2 * LATENT, SIZE) / 8,
        "state_cache": normal(4, PAGES, 16, 4 * LATENT).float(),
        "ape": normal(5, 4, 2 * LATENT).float(),
        "norm_weight": normal(6, LATENT),
        "rope_sin": normal(7, rows, ROPE).float(),
        "rope_cos": normal(8, rows, ROPE).float(),
        "state_block_table": torch.tensor(batch.table, dtype=torch.int32),
        "cu_seqlens": bounds,
        "seqused": None,
        "start_pos": starts,
        "rope_head_dim": ROPE,
        "cmp_ratio": 4,
        "coff": 2,
        "norm_eps": 1e-6,
        "rotary_mode": 2,
        "cache_mode": 1,
    }


def step_arguments(dtype: torch.dtype = torch.int64) -> dict[str, Any]:
    """Two queries of three sequences: the last one is padding, with a length and a block of 0."""
    return {
        "num_seqs": 3,
        "num_queries": 2,
        "block_size": 4,
        "input_tokens": torch.tensor([1, 2, 9]),
        "sampled_token_ids": torch.tensor([[70], [80]]),
        "input_positions": torch.tensor([2, 3, 8]),
        "seq_lens": torch.tensor([3, 4, 0], dtype=dtype),
        "slot_mapping": torch.tensor([0, 0, -1], dtype=dtype),
        "block_tables": torch.tensor([[10, 11], [20, 21], [0, 0]], dtype=dtype),
    }


def some_of(arguments: dict[str, Any], names: str) -> dict[str, Any]:
    return {name: arguments[name] for name in names.split()}


def reference(op: str) -> Callable[..., Any]:
    found = custom_pypto.core.reference(op)
    assert found is not None
    return found.function


def reference_attention(arguments: dict[str, Any]) -> tuple[Tensor, Tensor]:
    function = reference(ATTENTION)
    others = {"key": "kv_cache", "key_rope": "kr_cache", "scale_value": "scale"}
    given = {others.get(name, name): value for name, value in arguments.items()}
    given = {name: given[name] for name in signature(function).parameters if name in given}
    return function(**given | {LSE: True})


def check_indexer(result: Tensor, arguments: dict[str, Any]) -> None:
    assert result.dtype == torch.int32
    wanted = reference("npu_lightning_indexer_pto")(**arguments)
    assert torch.equal(result.sort(-1).values, wanted.sort(-1).values)


def check_quantised(result: Tensor, arguments: dict[str, Any]) -> None:
    real = {name: value for name, value in arguments.items() if "quant" not in name}
    for name in ("query", "key"):
        real[name] = arguments[name].double() * arguments[f"{name}_dequant_scale"][..., None]
    check_indexer(result, real | {"weights": arguments["weights"].double()})


def check_attention(result: Tensor, arguments: dict[str, Any]) -> None:
    torch.testing.assert_close(result, reference_attention(arguments)[0], rtol=0.02, atol=0.002)


def check_shared_kv(result: Tensor, arguments: dict[str, Any]) -> None:
    given = {**arguments, "layout_kv": "PA_BBND"}
    tokens, _ = given.pop("seqused_kv"), given.pop("cu_seqlens_ori_kv")
    lengths = {"seqused_ori_kv": tokens, "seqused_cmp_kv": tokens // 4}
    wanted, _ = reference(SHARED_KV)(**given, **lengths, cmp_residual_kv=tokens % 4)
    torch.testing.assert_close(result, wanted, rtol=0.02, atol=0.002)


def check_streams(result: tuple[Tensor, ...], arguments: dict[str, Any]) -> None:
    given = some_of(arguments, "x hc_fn hc_scale hc_base").values()
    y, post, mixing, *_ = reference("npu_mhc_pre")(*given, **some_of(arguments, "norm_eps hc_eps"))
    comb, *_ = reference("npu_mhc_sinkhorn")(mixing, eps=1e-3, num_iters=5)
    torch.testing.assert_close(result, (y, post, comb), rtol=0.01, atol=1e-3)


def check_layer(result: Tensor, arguments: dict[str, Any]) -> None:
    x, residual, post, comb = (each.double() for each in arguments.values())
    wanted = post.unsqueeze(-1) * x.unsqueeze(-2) + comb.mT @ residual
    torch.testing.assert_close(result, wanted.bfloat16(), rtol=0.01, atol=1e-3)


def check_compressed(result: Tensor, arguments: dict[str, Any]) -> None:
    names = "query key weights query_dequant_scale key_dequant_scale block_table cmp_ratio"
    tokens = arguments["actual_seq_lengths_key"]
    wanted, _ = reference(QUANT_V2)(
        **some_of(arguments, names),
        topk=TOP_K,
        quant_mode=2,
        cu_seqlens_q=torch.nn.functional.pad(arguments["actual_seq_lengths_query"], (1, 0)),
        seqused_k=tokens // 4,
        cmp_residual_k=tokens % 4,
        layout_q="TND",
        layout_k="PA_BBND",
        mask_mode=3,
    )
    assert torch.equal(result.sort(-1).values, wanted.sort(-1).values)


def check_compressor(result: Tensor, arguments: dict[str, Any]) -> None:
    """The state is written by now: the same tokens close the same rows again."""
    names = "x wkv wgate state_cache ape cmp_ratio state_block_table cu_seqlens start_pos coff"
    written = arguments["state_cache"].clone()
    rows = reference("npu_compressor")(**some_of(arguments, names)).double()
    torch.testing.assert_close(written, arguments["state_cache"])
    given = some_of(arguments, "norm_weight rope_cos rope_sin").values()
    rotated = norm_and_rotate(rows, *map(Tensor.double, given), eps=1e-6, interleaved=True)
    torch.testing.assert_close(result, rotated.bfloat16(), rtol=0.02, atol=0.01)


def check_parts(result: tuple[Tensor, ...], arguments: dict[str, Any]) -> None:
    out, softmax_max, softmax_sum = result
    check_attention(out, arguments)
    lse = softmax_max.float() + torch.log(softmax_sum.float())
    # Heads come after tokens, as where the engines merge the parts of several ranks.
    lse = lse.permute(1, 0, 2).reshape(lse.shape[1], -1)
    torch.testing.assert_close(lse, reference_attention(arguments)[1], rtol=1e-2, atol=1e-2)


# Arguments and check, by the function that is called.
FUNCTIONS: dict[str, tuple[Callable[..., dict[str, Any]], Callable[..., None]]] = {
    "lightning_indexer": (indexer_arguments, check_indexer),
    "npu_lightning_indexer": (indexer_arguments, check_indexer),
    "npu_lightning_indexer_quant": (quantised_arguments, check_quantised),
    QUANT: (float8_arguments, check_quantised),
    ATTENTION: (attention_arguments, check_attention),
    "npu_sparse_attn_sharedkv": (shared_kv_arguments, check_shared_kv),
    "sparse_attn_sharedkv": (shared_kv_arguments, check_shared_kv),
    "npu_hc_pre": (streams_arguments, check_streams),
    "npu_hc_post": (layer_arguments, check_layer),
    VLLM_QUANT: (compressed_arguments, check_compressed),
    "compressor": (compressor_arguments, check_compressor),
}
STEPS = [call for call in CALLS if call.op == "npu_advance_step_flashattn"]
STEP, NO_PADDING_STEP = "npu_advance_step_flashattn", "advance_step_flashattn_ascendc"
STEP_TENSORS = "input_tokens sampled_token_ids input_positions seq_lens slot_mapping block_tables"
STEP_SIZES = "num_seqs num_queries block_size"
# The arguments that engines pass by position.
BY_POSITION = {
    STEP: f"{STEP_TENSORS} {STEP_SIZES}",
    NO_PADDING_STEP: f"{STEP_SIZES} {STEP_TENSORS}",
    "npu_sparse_attn_sharedkv": "q",
    "sparse_attn_sharedkv": "q",
    "npu_hc_pre": "x hc_fn hc_scale hc_base hc_mult hc_sinkhorn_iters norm_eps hc_eps",
    "npu_hc_post": "x residual post comb",
    "compressor": "x wkv wgate state_cache ape norm_weight rope_sin rope_cos",
    "lightning_indexer": "query key weights",
}


def name_of(call: Call) -> str:
    return f"{call.engine} {call.name}"


def run(call: Call, arguments: dict[str, Any]) -> Any:
    """The call's result, with the arguments in its order, as the engine takes it."""
    given, op = dict(arguments), call.served.removeprefix("custom.")
    if op != call.served:  # torch.ops.custom has neither
        given = {n: each for n, each in given.items() if n not in ("attention_mode", LSE)}
    args = [given.pop(name) for name in BY_POSITION.get(op, "").split()]
    return call.take(attrgetter(call.served)(serving)(*args, **given))


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("call", [call for call in CALLS if call not in STEPS], ids=name_of)
def test_a_call_gives_what_the_op_defines(call: Call, batch: str) -> None:
    make_arguments, check = FUNCTIONS[call.served.removeprefix("custom.")]
    if "softmax" in call.statement:
        make_arguments, check = rank_attention_arguments, check_parts
    arguments = make_arguments(BATCHES[batch])
    check(run(call, arguments), arguments)


@pytest.mark.parametrize("call", STEPS, ids=name_of)
def test_a_step_leaves_or_writes_padding_as_the_engine_s_op_does(call: Call) -> None:
    leaves = call.served == "advance_step_flashattn_ascendc"
    arguments = step_arguments(torch.int32 if leaves else torch.int64)
    run(call, arguments)
    token, position = (9, 8) if leaves else (0, 0)
    slots = [10 * 4 + 3, 21 * 4, -1]
    names = ("input_tokens", "input_positions", "seq_lens", "slot_mapping")
    written = [arguments[name].tolist() for name in names]
    assert written == [[70, 80, token], [3, 4, position], [4, 5, 0], slots]


OTHER_OP = f"of vllm-ascend 0.20 to 0.22: call {VLLM_QUANT}"
ROWS = "must have num_seqs (3) rows"
MAKERS = {
    **{op: make for op, (make, _) in FUNCTIONS.items()},
    STEP: step_arguments,
    NO_PADDING_STEP: partial(step_arguments, torch.int32),
}
REFUSED: list[tuple[str, str, Any, str]] = [
    (ATTENTION, "layout_query", "BSND", "got 'BSND' and 3 dimensions"),
    (ATTENTION, "sparse_block_size", 64, "must be 1, got 64"),
    (ATTENTION, "attention_mode", 0, "must be 2, got 0"),
    (ATTENTION, "sinks", torch.zeros(HEADS), "must be None"),
    (ATTENTION, "pre_tokens", 1024, f"must be {2**63 - 1}, got 1024"),
    (ATTENTION, "value", normal(8, PAGES, 16, 1, LATENT), "must be the same tensor as key"),
    (ATTENTION, "query_rope", None, "must be given for attention_mode 2"),
    (QUANT, "metadata", torch.zeros(8), OTHER_OP),
    (VLLM_QUANT, "key_quant_mode", 1, "must be 0, got 1; call npu_quant_lightning_indexer_v2"),
    (VLLM_QUANT, "layout_key", "TND", "must be 'PA_BSND', got 'TND'"),
    ("npu_hc_pre", "hc_mult", 8, "must be 4, got 8"),
    ("compressor", "rope_head_dim", 64, f"must be {ROPE}, got 64"),
    ("compressor", "rotary_mode", 3, "must be 1, got 3; 2 is supported, too"),
    ("compressor", "cache_mode", 2, "must be 1, got 2"),
    (STEP, "spec_token", torch.zeros(2, 1), "must be None, got a tensor of shape"),
    (NO_PADDING_STEP, "input_tokens", torch.tensor([1, 2]), ROWS),
    (NO_PADDING_STEP, "block_tables", torch.zeros(2, 2, dtype=torch.int32), ROWS),
]


@pytest.mark.parametrize(("op", "argument", "value", "says"), REFUSED)
def test_an_argument_is_refused_and_nothing_is_written(
    op: str, argument: str, value: Any, says: str
) -> None:
    arguments = MAKERS[op]() | {argument: value}
    before = copy.deepcopy(arguments)
    with pytest.raises(ValueError, match=f"^{op}: argument '{argument}' ") as caught:
        getattr(serving, op)(**arguments)
    assert says in str(caught.value)
    for name, each in arguments.items():
        assert not isinstance(each, Tensor) or torch.equal(each, before[name]), name


def test_values_may_be_another_view_of_the_keys_or_none_and_a_block_size_the_sixth() -> None:
    arguments = attention_arguments()
    expected = serving.npu_sparse_flash_attention(**arguments)[0]
    for value in (arguments["key"].squeeze(2).unsqueeze(2), None):
        actual = serving.npu_sparse_flash_attention(**arguments | {"value": value})[0]
        assert torch.equal(actual, expected)
    names = ("query", "key", "value", "sparse_indices", "scale_value", "sparse_block_size")
    positional = [arguments.pop(name) for name in names]
    del arguments["attention_mode"], arguments[LSE]
    op = serving.custom.npu_sparse_flash_attention
    assert torch.equal(op(*positional, **arguments), expected)
    assert torch.equal(op(*positional[:5], sparse_block_size=1, **arguments), expected)


@pytest.mark.parametrize("layout", ["BSND", "TND"])
def test_keys_that_are_not_paged(layout: str) -> None:
    batch: tuple[int, ...] = (2,) if layout == "BSND" else ()
    query_ends, key_ends = (None, None) if batch else torch.tensor([[1, 2], [13, 20]])
    latents = normal(8, *batch, 20, 1, LATENT)
    arguments = attention_arguments() | {
        "query": normal(9, *batch, 2, HEADS, LATENT),
        "query_rope": normal(10, *batch, 2, HEADS, ROPE),
        "key": latents,
        "value": latents,
        "key_rope": normal(11, *batch, 20, 1, ROPE),
        "sparse_indices": torch.tensor([6, 2, 4, 0]).expand(*batch, 2, 1, 4),
        "block_table": None,
        "actual_seq_lengths_query": query_ends,
        "actual_seq_lengths_kv": key_ends,
        "layout_query": layout,
        "layout_kv": layout,
        LSE: True,
    }
    out, *parts = serving.npu_sparse_flash_attention(**arguments)
    check_attention(out, arguments)
    published = (2, 1, 2, HEADS) if layout == "BSND" else (1, 2, HEADS)
    assert [part.shape for part in parts] == [published] * 2


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("layout", ["BSND", "TND"])
def test_uncompressed_keys_are_selected_as_by_torch_npu_s_op(layout: str, mode: int) -> None:
    given = float8_arguments() | {"layout_query": layout, "sparse_mode": mode}
    if layout == "BSND":
        for name in ("query", "weights", "query_dequant_scale"):
            given[name] = given[name].unflatten(0, (2, 2))
        given["actual_seq_lengths_query"] = torch.tensor([2, 1], dtype=torch.int32)
    expected = serving.npu_quant_lightning_indexer(**given).sort(-1).values
    del given["layout_key"]  # the default is that of torch.ops.custom
    positions, scores = serving.custom.npu_quant_lightning_indexer(**given, return_value=True)
    assert torch.equal(positions.sort(-1).values, expected)
    assert torch.equal(scores == -torch.inf, positions == -1)


def test_functions_of_custom_have_the_defaults_and_the_order_of_torch_ops_custom() -> None:
    custom, names = serving.custom, BY_POSITION["compressor"].split()
    given = compressor_arguments()
    expected = serving.compressor(**given)
    given = compressor_arguments()
    first = [given.pop(name) for name in (*names, "rope_head_dim", "cmp_ratio")]
    assert torch.equal(custom.compressor(*first, **given), expected)
    lengths = torch.tensor(MIXED.lengths, dtype=torch.int32)
    metadata = custom.npu_sparse_attn_sharedkv_metadata(HEADS, 1, LATENT, seqused_kv=lengths)
    assert metadata.shape == (1024,)


def test_adapters_are_traced_whole() -> None:
    def layer(indexer: dict[str, Any], attention: dict[str, Any]) -> tuple[Tensor, Tensor]:
        indices, _ = serving.npu_lightning_indexer(**indexer)
        attention = attention | {"sparse_indices": indices}
        return indices, serving.npu_sparse_flash_attention(**attention)[0]

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    batch = BATCHES["padded rows"]
    arguments = indexer_arguments(batch), attention_arguments(batch)
    torch.testing.assert_close(compiled(*arguments), layer(*arguments), rtol=0, atol=0)


def test_an_op_that_is_not_installed_says_what_to_do() -> None:
    with pytest.raises(AttributeError, match=r"no op 'npu_unheard_of'.*is a wheel of its own"):
        serving.npu_unheard_of  # noqa: B018
