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
from torch.utils.flop_counter import FlopCounterMode

# Two sequences with two new tokens each, tables of 40 blocks, and 64 blocks of keys in all.
SIZES = replace(samples.DEEPSEEK_V32, lengths=(39 * 128, 23 * 128), tokens=2, integers=torch.int32)
TOKENS, SELECTED = 4, 2048


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
    "add_custom": lambda _: {"self": meta(3, 5), "other": meta(3, 5)},
    "add_custom_backward": lambda _: {"self": meta(3, 5)},
    "npu_mla_prolog": samples.mla_arguments,
    "npu_indexer_prolog": samples.indexer_arguments,
    "npu_lightning_indexer_pto": index_arguments,
    "npu_sparse_flash_attention": partial(samples.attention_arguments, count=SELECTED),
    "npu_sparse_attention_pto": samples.fused_arguments,
}
OF_MLA = 7168 * 1536 + 1536 * 24576 + 128 * 128 * 512 + 7168 * 576
OF_INDEXER = 1536 * 8192 + 7168 * 128 + 7168 * 64
OF_SCORES = TOKENS * 64 * 128 * (40 * 128)
OF_ATTENTION = TOKENS * 128 * 2048 * (576 + 512)
MULTIPLY_ADDS = {
    "add_custom": 0,
    "add_custom_backward": 0,
    "npu_mla_prolog": TOKENS * OF_MLA,
    "npu_indexer_prolog": TOKENS * OF_INDEXER,
    "npu_lightning_indexer_pto": OF_SCORES,
    "npu_sparse_flash_attention": OF_ATTENTION,
    "npu_sparse_attention_pto": TOKENS * (OF_MLA + OF_INDEXER) + OF_SCORES + OF_ATTENTION,
}
# Of the caches: what is written, or read. 64 blocks are fewer than two tables of 40 can hold.
ANGLES_BYTES = 2 * 2 * TOKENS * 64 + 4 * TOKENS
MLA_BYTES = 2 * (TOKENS * 7168 + OF_MLA + 1536 + 512 + TOKENS * 576) + ANGLES_BYTES
BYTES = {
    "add_custom": 3 * 15 * 2,
    "add_custom_backward": 3 * 15 * 2,
    "npu_mla_prolog": MLA_BYTES + 2 * TOKENS * (128 * 576 + 1536),
    "npu_indexer_prolog": 2 * (TOKENS * (7168 + 1536) + OF_INDEXER + 256 + TOKENS * 128)
    + ANGLES_BYTES
    + 2 * TOKENS * (64 * 128 + 64),
    "npu_lightning_indexer_pto": 2 * TOKENS * (64 * 128 + 64)
    + 2 * 64 * 128 * 128
    + 4 * TOKENS * 2048,
    "npu_sparse_flash_attention": 2 * TOKENS * 128 * (576 + 512)
    + 4 * TOKENS * 2048
    + 2 * TOKENS * 2048 * 576,
    "npu_sparse_attention_pto": MLA_BYTES
    + 2 * (OF_INDEXER + 256 + TOKENS * 128)
    + 4 * (2 * 40 + 2)
    + 2 * TOKENS * 128 * 512
    + 2 * (64 * 128 * 128 + TOKENS * 2048 * 576),
}


def cost_of(op: str, kind: str, given: dict[str, Any]) -> int | None:
    return evaluate_cost(contract(op), getattr(contract(op), kind), given)


@pytest.mark.parametrize("op", CALLS)
def test_cost_is_what_was_counted_by_hand(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Weights of the model have shapes alone.
    monkeypatch.setattr(samples.Data, "normal", lambda data, *shape, **_: meta(*shape))
    call = {
        n: each.to("meta") if isinstance(each, torch.Tensor) else each
        for n, each in CALLS[op](SIZES).items()
    }
    given = bind_arguments(contract(op), (), call)
    assert cost_of(op, "flops", given) == 2 * MULTIPLY_ADDS[op]
    assert cost_of(op, "bytes", given) == BYTES[op]


def test_every_official_op_says_what_it_costs() -> None:
    contracts = [core.contract(op.name) for op in core.ops()]
    silent = [op.name for op in contracts if op.flops is None or op.bytes is None]
    assert silent == []


def counted(function: Any, *args: Any, **kwargs: Any) -> int:
    """Count the flops of a function as torch does."""
    with FlopCounterMode(display=False) as mode:
        function(*args, **kwargs)
    return mode.get_total_flops()


@pytest.mark.parametrize(
    "op", ["npu_mla_prolog", "npu_indexer_prolog", "npu_lightning_indexer_prolog_pto"]
)
def test_flops_of_a_prolog_are_what_torch_counts_in_its_reference(op: str) -> None:
    reference = core.reference(op)
    assert reference is not None
    for sample in core.samples(op):
        given = bind_arguments(contract(op), sample.args, sample.kwargs)
        assert cost_of(op, "flops", given) == counted(
            reference.function, *sample.args, **sample.kwargs
        )


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def test_flop_counter_counts_attention_and_its_backward() -> None:
    """Every token attends to five keys, all of its sequence."""
    given = {
        "query": normal(2, 3, 4, 8).requires_grad_(),
        "query_rope": normal(2, 3, 4, 2),
        "kv_cache": normal(2, 5, 1, 8),
        "kr_cache": normal(2, 5, 1, 2),
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
