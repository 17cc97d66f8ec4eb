"""Seeded inputs that no drawn call hits: real selections, long ones, DeepSeek's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

from . import reference
from .ops import TOP_K
from .weight_order import NZ_WEIGHTS, to_nz

Arguments = dict[str, Any]
"""The arguments of a call by name, in the order of the op's schema."""


@dataclass(frozen=True)
class Sizes:
    """Every size of the fused op; ``lengths`` is act_seqs."""

    lengths: tuple[int, ...] = (40, 7)
    tokens: int = 1
    hidden: int = 64
    query_rank: int = 48
    heads: int = 8
    nope: int = 16
    latent: int = 64
    rope: int = 8
    index_heads: int = 8
    index_size: int = 16
    block_size: int = 16
    dtype: torch.dtype = torch.bfloat16
    integers: torch.dtype = torch.int32

    @property
    def batch(self) -> int:
        """How many sequences there are."""
        return len(self.lengths)


SMALL = Sizes()
ODD = Sizes(
    lengths=(23, 1, 12),
    tokens=2,
    hidden=37,
    query_rank=21,
    heads=3,
    nope=7,
    latent=19,
    rope=6,
    index_heads=5,
    index_size=11,
    block_size=5,
    integers=torch.int64,
)
# No two dims of a call are equal: torch.compile takes equal sizes for one.
DISTINCT = replace(ODD, lengths=(23, 1, 12, 9, 4))
DISTINCT_RESIZED = replace(ODD, lengths=(9, 17, 2, 30, 8, 8), tokens=3)
# For numerical derivatives in fp64.
TINY = Sizes(lengths=(5, 3), tokens=2, heads=2, latent=3, rope=2, block_size=3, dtype=torch.float64)
WIDE = Sizes(
    lengths=(150, 300),
    tokens=3,
    hidden=160,
    query_rank=96,
    heads=72,
    nope=32,
    latent=128,
    rope=32,
    index_heads=16,
    index_size=64,
    block_size=64,
)
WIDE_RESIZED = replace(WIDE, lengths=(90, 41, 200), tokens=2)
# Heads as in DeepSeek's models: CANN's own kernels for attention and indexer take no others.
DEEPSEEK = Sizes(
    lengths=(40, 7),
    tokens=3,
    hidden=192,
    query_rank=96,
    heads=8,
    nope=32,
    latent=512,
    rope=64,
    index_heads=16,
    index_size=128,
)
DEEPSEEK_RESIZED = replace(DEEPSEEK, lengths=(90, 41, 200), tokens=2)
DEEPSEEK_DISTINCT = replace(DEEPSEEK, lengths=(70, 70, 70), tokens=5, heads=2)
DEEPSEEK_DISTINCT_RESIZED = replace(DEEPSEEK_DISTINCT, lengths=(90,) * 6, tokens=4)
DEEPSEEK_LONG = replace(
    DEEPSEEK, lengths=(2500, 2048), tokens=1, heads=2, block_size=128, integers=torch.int64
)
# DeepSeek-V3.2's own sizes: weights of 10^8 numbers.
DEEPSEEK_V32 = Sizes(
    lengths=(130, 70),
    hidden=7168,
    query_rank=1536,
    heads=128,
    nope=128,
    latent=512,
    rope=64,
    index_heads=64,
    index_size=128,
    block_size=128,
)
LONG = replace(SMALL, lengths=(2500, 2048), tokens=2, block_size=128)

CASES: dict[str, Sizes] = {
    "small": SMALL,
    "small-fp16": replace(SMALL, dtype=torch.float16),
    "small-fp32": replace(SMALL, dtype=torch.float32),
    "odd": ODD,
    "odd-fp32": replace(ODD, dtype=torch.float32),
    "wide": WIDE,
    "longer-than-top-k": LONG,
    "deepseek": DEEPSEEK,
    "deepseek-fp16": replace(DEEPSEEK, dtype=torch.float16, tokens=1, hidden=64, heads=16),
    "deepseek-longer-than-top-k": DEEPSEEK_LONG,
}
RESIZED = {"wide": WIDE_RESIZED, "deepseek": DEEPSEEK_RESIZED}
"""Cases with other numbers of sequences and tokens, by the name of the original."""

FRACTAL_SIZES = replace(DEEPSEEK, query_rank=32, heads=4, nope=16)
# Sizes that CANN's own kernels do not take, with weights that fractal NZ order can hold.
NZ_LONG = replace(LONG, latent=56, index_heads=16)
# Attention that CANN's own kernel takes, with an indexer that it does not.
OTHER_INDEXERS = {
    "index-size-64": replace(FRACTAL_SIZES, index_size=64),
    "index-heads-72": replace(FRACTAL_SIZES, index_heads=72),
}


class Data:
    """Random tensors for one ``Sizes``, the same for the same seed on every device."""

    def __init__(self, sizes: Sizes, device: str = "cpu", seed: int = 0) -> None:
        self.sizes = sizes
        self.device = device
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Tensor:
        """Normally distributed values in the activation dtype."""
        values = torch.randn(shape, generator=self.generator, device="cpu") * scale + mean
        return values.to(self.sizes.dtype).to(self.device)

    def weight(self, depth: int, columns: int) -> Tensor:
        """A [depth, columns] matrix that keeps the size of what it multiplies."""
        return self.normal(depth, columns, scale=depth**-0.5)

    def integers(self, values: list[int] | Tensor) -> Tensor:
        """``values`` in the sizes' integer dtype."""
        return torch.as_tensor(values, device="cpu").to(self.sizes.integers).to(self.device)

    def block_table(self) -> tuple[Tensor, int]:
        """A shuffled block table, -1 where nothing is needed, and the number of blocks."""
        size = self.sizes.block_size
        needed = [-(-length // size) for length in self.sizes.lengths]
        blocks = sum(needed) + 2
        order = torch.randperm(blocks, generator=self.generator, device="cpu").tolist()
        table = torch.full((self.sizes.batch, max(needed) + 1), -1, device="cpu")
        for row, count in zip(table, needed, strict=True):
            row[:count] = torch.tensor(order[:count], device="cpu")
            order = order[count:]
        return self.integers(table), blocks

    def slots(self, block_table: Tensor) -> Tensor:
        """Slots [B, S1] of each sequence's last tokens; those before its start share one."""
        size, tokens = self.sizes.block_size, self.sizes.tokens
        rows = []
        for table, length in zip(block_table.tolist(), self.sizes.lengths, strict=True):
            positions = [max(length - tokens + s, 0) for s in range(tokens)]
            rows.append([max(table[p // size], 0) * size + p % size for p in positions])
        return self.integers(torch.tensor(rows, device="cpu"))

    def cache(self, blocks: int, size: int) -> Tensor:
        """A filled cache [blocks, block_size, 1, size]."""
        return self.normal(blocks, self.sizes.block_size, 1, size)


def fused_arguments(sizes: Sizes, device: str = "cpu", seed: int = 0) -> Arguments:
    """A call of npu_sparse_attention_pto."""
    s, data = sizes, Data(sizes, device, seed)
    x = data.normal(s.batch, s.tokens, s.hidden)
    angles = torch.rand(s.batch, s.tokens, s.rope, generator=data.generator, device="cpu") * 6.28
    block_table, blocks = data.block_table()
    return {
        "x": x,
        "w_dq": data.weight(s.hidden, s.query_rank),
        "w_uq_qr": data.weight(s.query_rank, s.heads * (s.nope + s.rope)),
        "w_uk": data.normal(s.heads, s.nope, s.latent, scale=s.nope**-0.5),
        "w_dkv_kr": data.weight(s.hidden, s.latent + s.rope),
        "gamma_cq": data.normal(s.query_rank, scale=0.1, mean=1.0),
        "gamma_ckv": data.normal(s.latent, scale=0.1, mean=1.0),
        "sin": angles.sin().to(s.dtype).to(device),
        "cos": angles.cos().to(s.dtype).to(device),
        "cache_index": data.slots(block_table),
        "kv_cache": data.cache(blocks, s.latent),
        "kr_cache": data.cache(blocks, s.rope),
        "block_table": block_table,
        "act_seqs": data.integers(list(s.lengths)),
        "w_idx_qb": data.weight(s.query_rank, s.index_heads * s.index_size),
        "w_idx_k": data.weight(s.hidden, s.index_size),
        "w_idx_proj": data.weight(s.hidden, s.index_heads),
        "in_gamma_k": data.normal(s.index_size, scale=0.1, mean=1.0),
        "in_beta_k": data.normal(s.index_size, scale=0.1),
        "index_k_cache": data.cache(blocks, s.index_size),
    }


def mla_arguments(sizes: Sizes, device: str = "cpu", seed: int = 0) -> Arguments:
    """A call of npu_mla_prolog, with x [B, S1, H]."""
    return reference.arguments_of(reference.mla_prolog, fused_arguments(sizes, device, seed))


def indexer_arguments(sizes: Sizes, device: str = "cpu", seed: int = 0) -> Arguments:
    """A call of npu_indexer_prolog, with x [B, S1, H]."""
    q_norm = Data(sizes, device, seed + 1).normal(sizes.batch, sizes.tokens, sizes.query_rank)
    given = {**fused_arguments(sizes, device, seed), "q_norm": q_norm}
    return reference.arguments_of(reference.indexer_prolog, given)


def attention_arguments(
    sizes: Sizes, device: str = "cpu", seed: int = 0, count: int = 32, layout: str = "BSND"
) -> Arguments:
    """A call of npu_sparse_flash_attention.

    Each row selects up to ``count`` distinct positions at random, with -1 strewn in; in the layout
    TND, sequences have 1 to ``sizes.tokens`` query tokens.
    """
    data = Data(sizes, device, seed)
    generator = torch.Generator().manual_seed(seed)
    block_table, blocks = data.block_table()
    is_tnd = layout == "TND"
    tokens = [1 + b % sizes.tokens if is_tnd else sizes.tokens for b in range(sizes.batch)]
    leading = (sum(tokens),) if is_tnd else (sizes.batch, sizes.tokens)
    ends = {"actual_seq_lengths_query": data.integers(torch.tensor(tokens, device="cpu").cumsum(0))}
    sequences = [b for b, number in enumerate(tokens) for _ in range(number)]
    indices = torch.full((len(sequences), count), -1, device="cpu")
    for row, b in zip(indices, sequences, strict=True):
        chosen = torch.randperm(sizes.lengths[b], generator=generator, device="cpu")[:count]
        places = torch.randperm(count, generator=generator, device="cpu")[: len(chosen)]
        row[places] = chosen
    return {
        "query": data.normal(*leading, sizes.heads, sizes.latent),
        "query_rope": data.normal(*leading, sizes.heads, sizes.rope),
        "kv_cache": data.cache(blocks, sizes.latent),
        "kr_cache": data.cache(blocks, sizes.rope),
        "sparse_indices": data.integers(indices.reshape(*leading, 1, count)),
        "block_table": block_table,
        "actual_seq_lengths_kv": data.integers(list(sizes.lengths)),
        "scale": (sizes.latent + sizes.rope) ** -0.5,
        **(ends if is_tnd else {}),
    }


def unpaged(call: Arguments) -> Arguments:
    """A call of `attention_arguments` with the same keys in the layout of the queries.

    In the layout BSND all sequences are as long as a row of the block table.
    """
    table, lengths = call["block_table"], call["actual_seq_lengths_kv"]
    layout = "BSND" if call["query"].dim() == 4 else "TND"

    def keys(cache: Tensor) -> Tensor:
        rows = cache[table.clamp(min=0).long()].flatten(1, 2)
        if layout == "BSND":
            return rows
        return torch.cat([row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)])

    return {
        **call,
        "kv_cache": keys(call["kv_cache"]),
        "kr_cache": keys(call["kr_cache"]),
        "block_table": None,
        "actual_seq_lengths_kv": (
            lengths.cumsum(0).to(lengths.dtype) if layout == "TND" else lengths
        ),
        "layout_kv": layout,
    }


def padded(call: Arguments) -> Arguments:
    """A call of keys in the layout TND, with query rows and keys that are of no sequence."""
    ends = call["actual_seq_lengths_query"]
    return {
        **call,
        **{name: torch.cat((call[name], call[name][:5])) for name in ("kv_cache", "kr_cache")},
        "actual_seq_lengths_query": ends.clamp(max=len(call["query"]) - 3),
    }


def gradient_arguments(call: Arguments) -> Arguments:
    """The call of npu_sparse_flash_attention_grad that follows a call of the attention."""
    query, kv_cache = call["query"], call["kv_cache"]
    on_cpu = {n: each.cpu() if isinstance(each, Tensor) else each for n, each in call.items()}
    op = torch.ops.custom_pypto.npu_sparse_flash_attention
    out, lse = op(**on_cpu, return_softmax_lse=True)
    generator = torch.Generator().manual_seed(0)
    d_out = torch.randn(out.shape, generator=generator, device="cpu").to(out.dtype)
    # A maximum and a sum that together are the log-sum-exp.
    softmax_max = lse.unsqueeze(query.dim() - 3)
    softmax_sum = torch.rand(softmax_max.shape, generator=generator, device="cpu") + 0.5
    return {
        "query": query,
        "key": kv_cache,
        "value": kv_cache,
        "sparse_indices": call["sparse_indices"],
        "d_out": d_out.to(query.device),
        "out": out.to(query.device),
        "softmax_max": (softmax_max - softmax_sum.log()).to(query.device),
        "softmax_sum": softmax_sum.to(query.device),
        "scale_value": call["scale"],
        "sparse_block_size": 1,
        "query_rope": call["query_rope"],
        "key_rope": call["kr_cache"],
        "actual_seq_qlen": call.get("actual_seq_lengths_query"),
        "actual_seq_kvlen": call["actual_seq_lengths_kv"],
        "layout": "BSND" if query.dim() == 4 else "TND",
        "sparse_mode": call.get("sparse_mode", 3),
        "attention_mode": 2,
        "block_table": call["block_table"],
        "paged": call["block_table"] is not None,
    }


def _sample(
    call: Arguments, name: str = "", larger: Arguments | None = None, positional: int = 20
) -> SampleInput:
    """A sample that passes its first arguments by position; ``larger`` is it at another size."""
    return SampleInput(
        tuple(islice(call.values(), positional)),
        dict(islice(call.items(), positional, None)),
        name,
        None if larger is None else _sample(larger, positional=positional),
    )


def _samples(make: Callable[[Sizes, str], Arguments], device: str) -> Iterator[SampleInput]:
    for name, sizes in CASES.items():
        larger = make(RESIZED[name], device) if name in RESIZED else None
        yield _sample(make(sizes, device), name, larger)


def fused_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_attention_pto."""
    yield from _samples(fused_arguments, device)
    fractal = fused_arguments(FRACTAL_SIZES, device)
    yield _sample(
        {name: to_nz(each) if name in NZ_WEIGHTS else each for name, each in fractal.items()},
        "fractal-nz",
    )
    for name, sizes in {**OTHER_INDEXERS, "nz-longer-than-top-k": NZ_LONG}.items():
        yield _sample(fused_arguments(sizes, device), name)


def mla_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_mla_prolog."""
    return _samples(mla_arguments, device)


def indexer_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_indexer_prolog."""
    return _samples(indexer_arguments, device)


def attention_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_flash_attention."""
    return (_sample(*each, positional=7) for each in _attention_calls(device))


def _attention_calls(device: str) -> Iterator[tuple[Arguments, str, Arguments | None]]:
    """Calls with their names and, for some of them, a call of another size."""

    def call(sizes: Sizes, layout: str = "BSND", count: int = 50, **options: Any) -> Arguments:
        # A size of 50 occurs nowhere else: torch.compile takes equal sizes for one.
        return attention_arguments(sizes, device, count=count, layout=layout) | options

    for name, sizes in CASES.items():
        for layout in ("BSND", "TND"):
            larger = call(RESIZED[name], layout, 20) if name in RESIZED else None
            yield call(sizes, layout), f"{name}-{layout.lower()}", larger
    yield call(DEEPSEEK_LONG, count=TOP_K, sparse_mode=0), "2048-positions-not-causal", None
    yield call(ODD, count=32, return_softmax_lse=True), "log-sum-exp", None
    for layout in ("BSND", "TND"):
        name = f"keys-{layout.lower()}"
        larger = unpaged(call(DISTINCT_RESIZED, layout, 20))
        yield unpaged(call(DISTINCT, layout)), name, larger
        yield unpaged(call(DEEPSEEK, layout)), f"deepseek-{name}", None
    if device == "cpu":  # NPUs have no fp64, which is for gradients.
        yield call(TINY, count=4), "fp64-bsnd", None
        yield unpaged(call(TINY, "TND", 4)), "fp64-keys-tnd", None
        # On NPUs rows of padding hold anything.
        yield padded(unpaged(call(DISTINCT, "TND"))), "padded", None
        yield padded(unpaged(call(TINY, "TND", 4))), "fp64-padded", None

    def with_prefix_sums(sizes: Sizes, count: int) -> Arguments:
        """Lengths of a BSND query above S1 mean S1. The first sequence is not whole."""
        ends = torch.arange(1, sizes.batch + 1, device="cpu") * sizes.tokens - 1
        lengths = Data(sizes, device).integers(ends)
        return call(sizes, count=count, actual_seq_lengths_query=lengths)

    yield with_prefix_sums(DEEPSEEK, 50), "prefix-sums", with_prefix_sums(DEEPSEEK_RESIZED, 20)


def gradient_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_flash_attention_grad."""
    for call, name, larger in _differentiated_calls(device):
        gradients = None if larger is None else gradient_arguments(larger)
        yield _sample(gradient_arguments(call), name, gradients, positional=14)


def _differentiated_calls(device: str) -> Iterator[tuple[Arguments, str, Arguments | None]]:
    for layout in ("BSND", "TND"):
        paged = attention_arguments(DISTINCT, device, layout=layout, count=50)
        yield paged, f"odd-paged-{layout.lower()}", None
        larger = attention_arguments(DISTINCT_RESIZED, device, layout=layout, count=20)
        yield unpaged(paged), f"odd-{layout.lower()}", unpaged(larger)
    others = {"fp32": replace(DISTINCT, dtype=torch.float32)}
    others["fp16"] = replace(SMALL, tokens=2, dtype=torch.float16)
    if device == "cpu":  # NPUs have no fp64.
        others["fp64"] = TINY
    for name, sizes in others.items():
        yield unpaged(attention_arguments(sizes, device, count=4)), name, None
    if device == "cpu":
        call = unpaged(attention_arguments(DISTINCT, device, layout="TND", count=50))
        yield padded(call), "padded", None

    def whole(sizes: Sizes, layout: str) -> Arguments:
        """As CANN's own kernel takes it: whole sequences, 2048 positions."""
        call = unpaged(attention_arguments(sizes, device, count=TOP_K, layout=layout))
        return call if layout == "TND" else {**call, "actual_seq_lengths_kv": None}

    for layout in ("BSND", "TND"):
        for dtype in (torch.bfloat16, torch.float16):
            sizes, larger_sizes = (
                replace(each, dtype=dtype)
                for each in (DEEPSEEK_DISTINCT, DEEPSEEK_DISTINCT_RESIZED)
            )
            name = f"deepseek-{layout.lower()}-{str(dtype).removeprefix('torch.')}"
            yield whole(sizes, layout), name, whole(larger_sizes, layout)
