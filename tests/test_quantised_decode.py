"""Decoding with int8 (W8A8C8) by the calls of models/deepseek_v3_2_exp of cann-recipes-infer."""

from dataclasses import replace

import custom_pypto.core  # noqa: F401  (provides the ops)
import torch
from custom_pypto_lightning_indexer_prolog import samples
from torch import Tensor

V32 = samples.DEEPSEEK
HEADS, SIZE, BLOCK, TOP_K = V32.heads, V32.size, V32.block_size, 256
LENGTHS, NEW = (700, 130, 300), 2
"""Tokens of each sequence, the new ones included; and how many of them are new."""


def slots(table: Tensor, sequence: int, count: int) -> Tensor:
    """The slots of the first `count` positions of a sequence."""
    positions = torch.arange(count)
    return table[sequence, positions // BLOCK].long() * BLOCK + positions % BLOCK


def test_new_tokens_choose_among_all_keys_the_new_ones_included() -> None:
    blocks = [-(-length // BLOCK) for length in LENGTHS]
    order = torch.randperm(sum(blocks), generator=torch.Generator().manual_seed(0)).split(blocks)
    table = torch.full((len(LENGTHS), max(blocks)), -1, dtype=torch.int32)
    for row, numbers in zip(table, order, strict=True):
        row[: len(numbers)] = numbers
    rows = [(b, length - NEW + s) for b, length in enumerate(LENGTHS) for s in range(NEW)]
    sizes = {"tokens": len(rows), "hidden": 512, "query_rank": 256, "blocks": sum(blocks)}
    prolog = samples.arguments(replace(V32, **sizes, epsilon=1e-6))
    # Scales of the old keys: positive, and as large as the new keys' scales.
    prolog["idx_k_scale_cache"].abs_().mul_(0.1)
    prolog["idx_k_cache_index"] = torch.stack([slots(table, b, p + 1)[-1] for b, p in rows])
    layouts = {"layout_query": "TND", "layout_key": "PA_BSND"}
    quantised = torch.ops.custom_pypto.npu_lightning_indexer_prolog_pto(**prolog, **layouts)
    query, scale, weights = quantised
    selected = torch.ops.custom_pypto.npu_quant_lightning_indexer(
        query=query.view(-1, HEADS, SIZE),
        key=prolog["idx_k_cache"],
        weights=weights,
        query_dequant_scale=scale.view(-1, HEADS),
        key_dequant_scale=prolog["idx_k_scale_cache"],
        query_quant_mode=0,
        key_quant_mode=0,
        actual_seq_lengths_query=torch.arange(NEW, len(rows) + 1, NEW, dtype=torch.int32),
        actual_seq_lengths_key=torch.tensor(LENGTHS, dtype=torch.int32),
        block_table=table,
        **layouts,
        sparse_count=TOP_K,
        sparse_mode=3,
    )
    keys = prolog["idx_k_cache"].flatten(0, 2).double()
    keys = keys * prolog["idx_k_scale_cache"].flatten()[:, None].double()
    for t, (b, p) in enumerate(rows):
        dots = (query[t].double() * scale[t].double()) @ keys[slots(table, b, p + 1)].T
        scores = weights[t].double() @ dots.relu()
        chosen = selected[t, 0]
        count = min(p + 1, TOP_K)
        assert chosen[count:].eq(-1).all()
        assert len(chosen[:count].unique()) == count
        best = scores.topk(count).values
        torch.testing.assert_close(scores[chosen[:count].long()], best, rtol=1e-4, atol=1e-4)
