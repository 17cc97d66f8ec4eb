"""npu_sparse_attention_pto as a whole."""

import pytest
import torch
from custom_pypto_sparse_attention import reference, samples
from torch import Tensor

fused = torch.ops.custom_pypto.npu_sparse_attention_pto
Arguments = dict[str, Tensor]
CACHES = ("kv_cache", "kr_cache", "index_k_cache")


def cloned(arguments: Arguments) -> Arguments:
    return {name: each.clone() for name, each in arguments.items()}


@pytest.mark.parametrize("name", samples.CASES)
def test_equals_its_pieces_bit_for_bit(name: str) -> None:
    pieces = samples.fused_arguments(samples.CASES[name])
    whole = cloned(pieces)
    out = fused(**whole)

    ops = torch.ops.custom_pypto
    query, query_rope, pieces["q_norm"] = ops.npu_mla_prolog(
        **reference.arguments_of(reference.mla_prolog, pieces)
    )
    query_index, weights = ops.npu_indexer_prolog(
        **reference.arguments_of(reference.indexer_prolog, pieces)
    )
    selected = ops.npu_lightning_indexer_pto(
        query_index,
        pieces["index_k_cache"],
        weights,
        actual_seq_lengths_key=pieces["act_seqs"],
        block_table=pieces["block_table"],
        sparse_count=2048,
    )
    attended, lse = ops.npu_sparse_flash_attention(
        query,
        query_rope,
        pieces["kv_cache"],
        pieces["kr_cache"],
        selected,
        pieces["block_table"],
        pieces["act_seqs"],
        scale=(pieces["kv_cache"].shape[-1] + pieces["kr_cache"].shape[-1]) ** -0.5,
    )
    assert lse.shape == (0,)
    assert torch.equal(out, attended)
    for cache in CACHES:
        assert torch.equal(whole[cache], pieces[cache])


def test_the_original_of_a_lazily_cloned_cache_is_left_alone() -> None:
    expected, arguments, untouched = (samples.fused_arguments(samples.SMALL) for _ in range(3))
    lazy = arguments | {cache: torch._lazy_clone(arguments[cache]) for cache in CACHES}
    assert torch.equal(fused(**lazy), fused(**expected))
    for cache in CACHES:
        assert torch.equal(lazy[cache], expected[cache])
        assert torch.equal(arguments[cache], untouched[cache])


def test_does_not_read_what_no_sequence_uses() -> None:
    arguments = samples.fused_arguments(samples.WIDE)
    clean = fused(**cloned(arguments))
    size = samples.WIDE.block_size
    unused = torch.ones(arguments["kv_cache"].shape[0] * size, dtype=torch.bool)
    for row, length in zip(arguments["block_table"].tolist(), samples.WIDE.lengths, strict=True):
        unused[[row[p // size] * size + p % size for p in range(length)]] = False
    for cache in CACHES:
        arguments[cache].view(-1, arguments[cache].shape[-1])[unused] = torch.nan
    assert torch.equal(fused(**arguments), clean)
