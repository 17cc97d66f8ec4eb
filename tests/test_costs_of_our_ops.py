"""What the official ops cost by their contracts, counted by hand and by torch."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from custom_pypto import core
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments, evaluate_cost
from custom_pypto_sparse_attention import samples
from custom_pypto_sparse_attention.ops import TOP_K
from torch.utils.flop_counter import FlopCounterMode

# Two sequences with two new tokens each, tables of 40 blocks, and 64 blocks of keys in all.
S = replace(samples.DEEPSEEK_V32, lengths=(39 * 128, 23 * 128), tokens=2, integers=torch.int32)
TOKENS = 4


def meta(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def index_arguments(sizes: samples.Sizes) -> dict[str, Any]:
    given = samples.fused_arguments(sizes)
    return {
        "query": meta(2, 2, sizes.index_heads, sizes.index_size),
        "key": given["index_k_cache"],
        "weights": meta(2, 2, sizes.index_heads),
        "actual_seq_lengths_key": given["act_seqs"],
        "block_table": given["block_table"],
    }


CALLS: dict[str, Callable[[samples.Sizes], dict[str, Any]]] = {
    "npu_mla_prolog": samples.mla_arguments,
    "npu_indexer_prolog": samples.indexer_arguments,
    "npu_lightning_indexer_pto": index_arguments,
    "npu_sparse_flash_attention": partial(samples.attention_arguments, count=TOP_K),
    "npu_sparse_attention_pto": samples.fused_arguments,
    "npu_compressor": lambda _: {
        "x": meta(2, 12, 64),
        **dict.fromkeys(("wkv", "wgate"), meta(48, 64)),
        "state_cache": meta(7, 4, 96, dtype=torch.float32),
        "ape": meta(4, 48, dtype=torch.float32),
        "state_block_table": meta(2, 3, dtype=torch.int32),
        "coff": 2,
    },
    "linear": lambda _: {"input": meta(2, 3, 64), "weight": meta(48, 64), "bias": meta(48)},
    "npu_mhc_pre": lambda _: {
        "x": meta(5, 4, 16),
        "phi": meta(24, 64, dtype=torch.float32),
        **{name: meta(size, dtype=torch.float32) for name, size in (("alpha", 3), ("bias", 24))},
    },
}
ROW = S.latent + S.rope
INDEX = S.index_heads * S.index_size
OF_MLA = S.hidden * (S.query_rank + ROW) + S.heads * (
    S.query_rank * (S.nope + S.rope) + S.nope * S.latent
)
OF_INDEXER = S.query_rank * INDEX + S.hidden * (S.index_size + S.index_heads)
OF_SCORES = TOKENS * INDEX * (40 * S.block_size)
OF_ATTENTION = TOKENS * S.heads * TOP_K * (ROW + S.latent)
MULTIPLY_ADDS = {
    "npu_mla_prolog": TOKENS * OF_MLA,
    "npu_indexer_prolog": TOKENS * OF_INDEXER,
    "npu_lightning_indexer_pto": OF_SCORES,
    "npu_sparse_flash_attention": OF_ATTENTION,
    "npu_sparse_attention_pto": TOKENS * (OF_MLA + OF_INDEXER) + OF_SCORES + OF_ATTENTION,
    "npu_compressor": 24 * 64 * 2 * 48,
    "linear": 6 * 64 * 48,
    "npu_mhc_pre": 5 * 64 * (24 + 1),
}
# Of the caches: what is written, or read. 64 blocks are fewer than two tables of 40 can hold.
INDEX_KEYS = 64 * S.block_size * S.index_size
ANGLES_BYTES = 2 * 2 * TOKENS * S.rope + 4 * TOKENS
MLA_BYTES = ANGLES_BYTES + 2 * (TOKENS * (S.hidden + ROW) + OF_MLA + S.query_rank + S.latent)
INDEXER_BYTES = 2 * (OF_INDEXER + (2 + TOKENS) * S.index_size)
SELECTED_BYTES = 2 * TOKENS * TOP_K * ROW
BYTES = {
    "npu_mla_prolog": MLA_BYTES + 2 * TOKENS * (S.heads * ROW + S.query_rank),
    "npu_indexer_prolog": ANGLES_BYTES
    + INDEXER_BYTES
    + 2 * TOKENS * (S.hidden + S.query_rank + INDEX + S.index_heads),
    "npu_lightning_indexer_pto": 2 * (TOKENS * (INDEX + S.index_heads) + INDEX_KEYS)
    + 4 * TOKENS * TOP_K,
    "npu_sparse_flash_attention": 2 * TOKENS * S.heads * (ROW + S.latent)
    + 4 * TOKENS * TOP_K
    + SELECTED_BYTES,
    "npu_sparse_attention_pto": MLA_BYTES
    + INDEXER_BYTES
    + 4 * (2 * 40 + 2)
    + 2 * TOKENS * S.heads * S.latent
    + 2 * INDEX_KEYS
    + SELECTED_BYTES,
    # 24 tokens, of which each writes 96 numbers of the state; 2 * 3 rows.
    "npu_compressor": 2 * 64 * (24 + 96) + 4 * (4 * 48 + 24 * 96) + 2 * 6 * 24,
    "linear": 2 * (6 * 64 + 48 * 64 + 6 * 48),
    "npu_mhc_pre": 2 * 5 * (64 + 16) + 4 * (24 * 64 + 5 * (4 + 16)),
}


def cost_of(op: str, kind: str, given: dict[str, Any]) -> int | None:
    return evaluate_cost(contract(op), getattr(contract(op), kind), given)


@pytest.mark.parametrize("op", CALLS)
def test_cost_is_what_was_counted_by_hand(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Weights of the model have shapes alone.
    monkeypatch.setattr(samples.Data, "normal", lambda data, *shape, **_: meta(*shape))
    call = {
        n: each.to("meta") if isinstance(each, torch.Tensor) else each
        for n, each in CALLS[op](S).items()
    }
    given = bind_arguments(contract(op), (), call)
    assert cost_of(op, "flops", given) == 2 * MULTIPLY_ADDS[op]
    assert cost_of(op, "bytes", given) == BYTES[op]


def test_every_official_op_says_what_it_costs() -> None:
    contracts = [core.contract(op.name) for op in core.ops()]
    silent = [op.name for op in contracts if op.flops is None or op.bytes is None]
    # Costs read no optional tensors, and these have little else.
    assert [op for op in silent if not op.startswith("npu_sparse_flash_mla")] == []


def counted(function: Any, *args: Any, **kwargs: Any) -> int:
    """Count the flops of a function as torch does."""
    with FlopCounterMode(display=False) as mode:
        function(*args, **kwargs)
    return mode.get_total_flops()


def test_flops_of_the_int8_prolog_are_what_torch_counts_in_its_reference() -> None:
    op = "npu_lightning_indexer_prolog_pto"
    reference = core.reference(op)
    assert reference is not None
    for sample in core.samples(op):
        given = bind_arguments(contract(op), sample.args, sample.kwargs)
        assert cost_of(op, "flops", given) == counted(
            reference.function, *sample.args, **sample.kwargs
        )


def test_flop_counter_counts_attention_and_its_backward() -> None:
    """Every token attends to five keys, all of its sequence."""
    given = {
        "query": torch.ones(2, 3, 4, 8, requires_grad=True),
        "query_rope": torch.ones(2, 3, 4, 2),
        "kv_cache": torch.ones(2, 5, 1, 8),
        "kr_cache": torch.ones(2, 5, 1, 2),
        "sparse_indices": torch.arange(5, dtype=torch.int32).expand(2, 3, 1, 5).contiguous(),
        "scale": 0.5,
        "sparse_mode": 0,
        "layout_kv": "BSND",
        "return_softmax_lse": True,
    }
    results: list[Any] = []
    op = torch.ops.custom_pypto.npu_sparse_flash_attention
    pairs = 2 * (2 * 3 * 4) * 5
    assert counted(lambda: results.extend(op(**given))) == pairs * (10 + 8)
    # Scores again, and the gradients of weights, values, queries and keys.
    assert counted(results[0].sum().backward) == pairs * (10 + 8 + 8 + 10 + 10)


def test_flop_counter_counts_the_ops_inside_an_op_once() -> None:
    [sample, *_] = core.samples("npu_sparse_attention_pto")
    op = torch.ops.custom_pypto.npu_sparse_attention_pto
    given = bind_arguments(contract("npu_sparse_attention_pto"), sample.args, sample.kwargs)
    expected = cost_of("npu_sparse_attention_pto", "flops", given)
    assert counted(op, *sample.args, **sample.kwargs) == expected
