"""The cases of the indexers: decode, prefill, int8, and one key to time the dispatch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from custom_pypto_sparse_attention.ops import TOP_K
from custom_pypto_sparse_attention.samples import DEEPSEEK_V32 as V32
from custom_pypto_testing.timing.peaks import Work

from benchmarks.case import BLOCK, Case, Planned, block_table, flops, meta, normal, visible

OP = "npu_lightning_indexer_pto"
QUANT_OP = "npu_quant_lightning_indexer"
WITH_VALUES = "npu_lightning_indexer"
HEADS, SIZE = V32.index_heads, V32.index_size
PUBLISHED: list[int] = torch.randint(
    1, 8193, (32,), generator=torch.Generator().manual_seed(0)
).tolist()


def cases() -> Iterator[Planned]:
    """Yield the cases: int8, decode, prefill, other dtypes, dispatch."""
    for lengths, tokens, text in (
        (PUBLISHED, 3, "B=32 S1=3, 1..8192"),
        ([65536], 1, "B=1 S1=1, 64K"),
    ):
        yield Planned(QUANT_OP, text, partial(quant_case, tokens, lengths), quick=True)
    for tokens, lengths, text, quick in (
        (3, [122] * 2, "B=2 S1=3, 122", True),
        (3, PUBLISHED, "B=32 S1=3, 1..8192", True),
        (1, [65536], "B=1 S1=1, 64K", True),
        (1, [131072], "B=1 S1=1, 128K", False),
        (1, [65536] * 4, "B=4 S1=1, 64K", False),
        (1, [65536] * 8, "B=8 S1=1, 64K", False),
        (1, [65536] * 32, "B=32 S1=1, 64K", False),
        (4096, [4096], "prefill S1=4096, 4K", False),
        (64, [65536], "prefill S1=64, 64K", False),
    ):
        yield Planned(OP, text, partial(case, tokens, lengths), quick=quick)
    for dtype in (torch.float32, torch.float16):
        text = f"B=32 S1=3, 1..8192, {str(dtype).removeprefix('torch.')}"
        yield Planned(OP, text, partial(case, 3, PUBLISHED, dtype))
    text, make = "one key, every argument", partial(_one_key, WITH_VALUES)
    yield Planned(OP, text, partial(_one_key, OP), quick=True)
    yield Planned(WITH_VALUES, text, make, quick=True)
    yield Planned(WITH_VALUES, f"{text}, autograd on", make, quick=True, inference=False)


def quant_case(tokens: int, lengths: list[int]) -> Case:
    """Make a case of 64 int8 heads of 128, which is compared with the same numbers in bf16."""
    batch = len(lengths)
    table, blocks = block_table(lengths)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randint(-127, 128, shape, dtype=torch.int8)

    def scales(*shape: int) -> torch.Tensor:
        return torch.rand(shape).half()

    key, query = numbers(blocks, BLOCK, 1, SIZE), numbers(batch, tokens, HEADS, SIZE)
    key_scale, query_scale = scales(blocks, BLOCK, 1), scales(batch, tokens, HEADS)
    weights = normal(batch, tokens, HEADS, dtype=torch.float16)
    act = torch.tensor(lengths, dtype=torch.int32)
    op = torch.ops.custom_pypto.npu_quant_lightning_indexer
    bf16_op = torch.ops.custom_pypto.npu_lightning_indexer_pto
    inputs = query, key, weights, query_scale, key_scale, 0, 0
    keywords = {"actual_seq_lengths_key": act, "block_table": table, "sparse_count": TOP_K}
    plain_key = (key * key_scale[..., None]).bfloat16()
    plain = (query * query_scale[..., None]).bfloat16(), plain_key, weights.bfloat16()
    return Case(
        lambda: op(*inputs, **keywords, layout_key="PA_BSND"),
        lambda base: lambda: base.lightning_indexer(*plain, act, table),
        (work(tokens, lengths),),
        torch.int8,
        in_bf16=lambda: bf16_op(*plain, **keywords),
    )


def case(tokens: int, lengths: list[int], dtype: torch.dtype = torch.bfloat16) -> Case:
    """Make a case of 64 heads of 128, keys in shuffled blocks."""
    table, blocks = block_table(lengths)
    key = normal(blocks, BLOCK, 1, SIZE, dtype=dtype)
    query = normal(len(lengths), tokens, HEADS, SIZE, dtype=dtype)
    weights = normal(len(lengths), tokens, HEADS, dtype=dtype)
    inputs = query, key, weights
    act = torch.tensor(lengths, dtype=torch.int32)
    op = torch.ops.custom_pypto.npu_lightning_indexer_pto
    keywords = {"actual_seq_lengths_key": act, "block_table": table, "sparse_count": TOP_K}
    return Case(
        lambda: op(*inputs, **keywords),
        lambda base: lambda: base.lightning_indexer(*inputs, act, table),
        (work(tokens, lengths),),
        dtype,
        has_bf16_scores=dtype == torch.bfloat16,
    )


def work(tokens: int, lengths: list[int]) -> Work:
    """Return the work of scoring every visible key, as one token that sees them all."""
    query, weights = meta(1, 1, HEADS, SIZE), meta(1, 1, HEADS)
    key = meta(1, visible(lengths, tokens), 1, SIZE)
    return flops(OP, query, key, weights, layout_key="BSND")


def _one_key(name: str) -> Case:
    query, key, weights = torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1, 1), torch.ones(1, 1, 1)
    one = torch.ones(1, dtype=torch.int32)
    table = torch.zeros(1, 1, dtype=torch.int32)
    op = getattr(torch.ops.custom_pypto, name)
    return Case(
        lambda: op(
            query,
            key,
            weights,
            actual_seq_lengths_query=one,
            actual_seq_lengths_key=one,
            block_table=table,
            layout_query="BSND",
            layout_key="PA_BSND",
            sparse_count=1,
            sparse_mode=3,
        ),
        lambda base: lambda: base.lightning_indexer(query, key, weights, one, table, 1),
        dtype=torch.float32,
    )
