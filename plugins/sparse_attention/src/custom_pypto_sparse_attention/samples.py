"""Seeded inputs that no drawing from the contract hits: real selections, long ones, DeepSeek's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

from .constants import TOP_K
from .nz import to_nz


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
# No two dims of a call are alike: torch.compile takes equal sizes for one.
DISTINCT = replace(ODD, lengths=(23, 1, 12, 9, 4))
DISTINCT_RESIZED = replace(ODD, lengths=(9, 17, 2, 30, 8, 8), tokens=3)
# For differences of an fp64 function, entry by entry.
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
# Heads as in DeepSeek's models: CANN's own kernels for attention and indexer take these alone.
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
"""Of some cases, the same with other numbers of sequences and tokens."""


class Data:
    """Random tensors for one ``Sizes``, the same for the same seed on every device."""

    def __init__(self, sizes: Sizes, device: str = "cpu", seed: int = 0) -> None:
        """Draw from a generator of its own, seeded with ``seed``."""
        self.sizes = sizes
        self.device = device
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0, mean: float = 0.0) -> Tensor:
        """Normally distributed values in the activation dtype."""
        values = torch.randn(shape, generator=self._generator) * scale + mean
        return values.to(self.sizes.dtype).to(self.device)

    def weight(self, depth: int, columns: int) -> Tensor:
        """A [depth, columns] matrix that keeps the size of what it multiplies."""
        return self.normal(depth, columns, scale=depth**-0.5)

    def integers(self, values: list[int] | Tensor) -> Tensor:
        """``values`` in the sizes' integer dtype."""
        return torch.as_tensor(values).to(self.sizes.integers).to(self.device)

    def angles(self, *leading: int) -> tuple[Tensor, Tensor]:
        """(sin, cos) of random angles, [*leading, rope]."""
        angles = torch.rand(*leading, self.sizes.rope, generator=self._generator) * 6.28
        dtype, device = self.sizes.dtype, self.device
        return angles.sin().to(dtype).to(device), angles.cos().to(dtype).to(device)

    def block_table(self) -> tuple[Tensor, int]:
        """A shuffled block table, -1 where nothing is needed, and the number of blocks."""
        size = self.sizes.block_size
        needed = [-(-length // size) for length in self.sizes.lengths]
        blocks = sum(needed) + 2
        order = torch.randperm(blocks, generator=self._generator).tolist()
        table = torch.full((self.sizes.batch, max(needed) + 1), -1)
        for row, count in zip(table, needed, strict=True):
            row[:count] = torch.tensor(order[:count])
            order = order[count:]
        return self.integers(table), blocks

    def slots(self, block_table: Tensor) -> Tensor:
        """Slots [B, S1] of each sequence's last tokens; those before its start share one."""
        size, tokens = self.sizes.block_size, self.sizes.tokens
        rows = []
        for table, length in zip(block_table.tolist(), self.sizes.lengths, strict=True):
            positions = [max(length - tokens + s, 0) for s in range(tokens)]
            rows.append([max(table[p // size], 0) * size + p % size for p in positions])
        return self.integers(torch.tensor(rows))

    def cache(self, blocks: int, size: int) -> Tensor:
        """A filled cache [blocks, block_size, 1, size]."""
        return self.normal(blocks, self.sizes.block_size, 1, size)

    def mla_weights(self) -> tuple[Tensor, ...]:
        """w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv."""
        s = self.sizes
        return (
            self.weight(s.hidden, s.query_rank),
            self.weight(s.query_rank, s.heads * (s.nope + s.rope)),
            self.normal(s.heads, s.nope, s.latent, scale=s.nope**-0.5),
            self.weight(s.hidden, s.latent + s.rope),
            self.normal(s.query_rank, scale=0.1, mean=1.0),
            self.normal(s.latent, scale=0.1, mean=1.0),
        )

    def index_weights(self) -> tuple[Tensor, ...]:
        """w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k."""
        s = self.sizes
        return (
            self.weight(s.query_rank, s.index_heads * s.index_size),
            self.weight(s.hidden, s.index_size),
            self.weight(s.hidden, s.index_heads),
            self.normal(s.index_size, scale=0.1, mean=1.0),
            self.normal(s.index_size, scale=0.1),
        )


def fused_arguments(sizes: Sizes, device: str = "cpu", seed: int = 0) -> tuple[Tensor, ...]:
    """The 20 tensors of npu_sparse_attention_pto."""
    data = Data(sizes, device, seed)
    x = data.normal(sizes.batch, sizes.tokens, sizes.hidden)
    sin, cos = data.angles(sizes.batch, sizes.tokens)
    block_table, blocks = data.block_table()
    return (
        x,
        *data.mla_weights(),
        sin,
        cos,
        data.slots(block_table),
        data.cache(blocks, sizes.latent),
        data.cache(blocks, sizes.rope),
        block_table,
        data.integers(list(sizes.lengths)),
        *data.index_weights(),
        data.cache(blocks, sizes.index_size),
    )


def mla_arguments(sizes: Sizes, device: str = "cpu", seed: int = 0) -> tuple[Tensor, ...]:
    """The 12 tensors of npu_mla_prolog, with x [B, S1, H]."""
    return fused_arguments(sizes, device, seed)[:12]


def indexer_arguments(sizes: Sizes, device: str = "cpu", seed: int = 0) -> tuple[Tensor, ...]:
    """The 11 tensors of npu_indexer_prolog, with x [B, S1, H]."""
    fused = fused_arguments(sizes, device, seed)
    q_norm = Data(sizes, device, seed + 1).normal(sizes.batch, sizes.tokens, sizes.query_rank)
    return (fused[0], q_norm, *fused[14:19], *fused[7:10], fused[19])


def attention_arguments(
    sizes: Sizes, device: str = "cpu", seed: int = 0, count: int = 32, layout: str = "BSND"
) -> tuple[tuple[Tensor, ...], dict[str, object]]:
    """Arguments and keywords of npu_sparse_flash_attention.

    Each row selects up to ``count`` distinct positions at random, with -1 strewn in; in the layout
    TND, sequences have 1 to ``sizes.tokens`` query tokens.
    """
    data = Data(sizes, device, seed)
    generator = torch.Generator().manual_seed(seed)
    block_table, blocks = data.block_table()
    if layout == "TND":
        ends = torch.tensor([1 + b % sizes.tokens for b in range(sizes.batch)]).cumsum(0)
        leading = (int(ends[-1]),)
        sequences = torch.searchsorted(ends, torch.arange(leading[0]), right=True).tolist()
        keywords: dict[str, object] = {"actual_seq_lengths_query": data.integers(ends)}
    else:
        leading = (sizes.batch, sizes.tokens)  # type: ignore[assignment]
        sequences = [b for b in range(sizes.batch) for _ in range(sizes.tokens)]
        keywords = {}
    indices = torch.full((len(sequences), count), -1)
    for row, b in zip(indices, sequences, strict=True):
        chosen = torch.randperm(sizes.lengths[b], generator=generator)[:count]
        places = torch.randperm(count, generator=generator)[: len(chosen)]
        row[places] = chosen
    keywords["scale"] = (sizes.latent + sizes.rope) ** -0.5
    return (
        data.normal(*leading, sizes.heads, sizes.latent),
        data.normal(*leading, sizes.heads, sizes.rope),
        data.cache(blocks, sizes.latent),
        data.cache(blocks, sizes.rope),
        data.integers(indices.reshape(*leading, 1, count)),
        block_table,
        data.integers(list(sizes.lengths)),
    ), keywords


def unpaged(
    arguments: tuple[Tensor, ...], keywords: dict[str, object]
) -> tuple[tuple[Tensor, ...], dict[str, object]]:
    """The call of `attention_arguments` with the same keys in the layout of the queries.

    Of the layout BSND all sequences are as long as a row of the block table.
    """
    query, query_rope, kv_cache, kr_cache, indices, table, lengths = arguments
    layout = "BSND" if query.dim() == 4 else "TND"

    def keys(cache: Tensor) -> Tensor:
        rows = cache[table.clamp(min=0).long()].flatten(1, 2)
        if layout == "BSND":
            return rows
        return torch.cat([row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)])

    ends = lengths.cumsum(0).to(lengths.dtype) if layout == "TND" else lengths
    given = (query, query_rope, keys(kv_cache), keys(kr_cache), indices, None, ends)
    return given, {**keywords, "layout_kv": layout}  # type: ignore[return-value]


def gradient_arguments(
    arguments: tuple[Tensor, ...], keywords: dict[str, object], seed: int = 0
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The call of npu_sparse_flash_attention_grad that follows a call of the attention."""
    query, query_rope, kv_cache, kr_cache, indices, table, lengths = arguments
    given = {**keywords, "return_softmax_lse": True}
    cpu = [None if each is None else each.cpu() for each in arguments]
    given = {name: each.cpu() if isinstance(each, Tensor) else each for name, each in given.items()}
    out, lse = torch.ops.custom_pypto.npu_sparse_flash_attention(*cpu, **given)
    generator = torch.Generator().manual_seed(seed)
    d_out = torch.randn(out.shape, generator=generator).to(out.dtype)
    softmax_max = lse.unsqueeze(query.dim() - 3)
    # A maximum and a sum that together are the log-sum-exp.
    softmax_sum = torch.rand(softmax_max.shape, generator=generator) + 0.5
    softmax_max = softmax_max - softmax_sum.log()
    return (
        query,
        kv_cache,
        kv_cache,
        indices,
        *(each.to(query.device) for each in (d_out, out, softmax_max, softmax_sum)),
        keywords["scale"],
        1,
        query_rope,
        kr_cache,
        keywords.get("actual_seq_lengths_query"),
        lengths,
    ), {
        "layout": "BSND" if query.dim() == 4 else "TND",
        "sparse_mode": keywords.get("sparse_mode", 3),
        "attention_mode": 2,
        "block_table": table,
        "paged": table is not None,
    }


FRACTAL_SIZES = replace(DEEPSEEK, query_rank=32, heads=4, nope=16)
# Sizes that CANN's own kernels do not take, and weights that fractal NZ order can hold.
NZ_LONG = replace(LONG, latent=56, index_heads=16)
# Attention as CANN's own kernel takes it, and an indexer as it does not.
OTHER_INDEXERS = {
    "index-size-64": replace(FRACTAL_SIZES, index_size=64),
    "index-heads-72": replace(FRACTAL_SIZES, index_heads=72),
}


def _samples(
    arguments: Callable[[Sizes, str], tuple[Tensor, ...]], device: str
) -> Iterator[SampleInput]:
    for name, sizes in CASES.items():
        other = RESIZED.get(name)
        resized = None if other is None else SampleInput(arguments(other, device))
        yield SampleInput(arguments(sizes, device), name=name, resized=resized)


def fused_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_attention_pto."""
    yield from _samples(fused_arguments, device)
    arguments = list(fused_arguments(FRACTAL_SIZES, device))
    for weight in (1, 2, 4, 14, 15, 16):
        arguments[weight] = to_nz(arguments[weight])
    yield SampleInput(tuple(arguments), name="fractal-nz")
    for name, sizes in OTHER_INDEXERS.items():
        yield SampleInput(fused_arguments(sizes, device), name=name)
    yield SampleInput(fused_arguments(NZ_LONG, device), name="nz-longer-than-top-k")


def mla_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_mla_prolog."""
    yield from _samples(mla_arguments, device)


def indexer_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_indexer_prolog."""
    yield from _samples(indexer_arguments, device)


def attention_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_flash_attention."""
    # A size of 50 occurs nowhere else: torch.compile takes equal sizes for one.
    count = 50
    for name, sizes in CASES.items():
        for layout in ("BSND", "TND"):
            arguments, keywords = attention_arguments(sizes, device, count=count, layout=layout)
            other = RESIZED.get(name)
            resized = (
                None
                if other is None
                else SampleInput(*attention_arguments(other, device, layout=layout, count=20))
            )
            yield SampleInput(arguments, keywords, name=f"{name}-{layout.lower()}", resized=resized)
    arguments, keywords = attention_arguments(DEEPSEEK_LONG, device, count=TOP_K)
    yield SampleInput(arguments, {**keywords, "sparse_mode": 0}, name="2048-positions-not-causal")
    arguments, keywords = attention_arguments(ODD, device)
    yield SampleInput(arguments, {**keywords, "return_softmax_lse": True}, name="log-sum-exp")
    for layout in ("BSND", "TND"):
        given = unpaged(*attention_arguments(DISTINCT, device, layout=layout, count=count))
        larger = unpaged(*attention_arguments(DISTINCT_RESIZED, device, layout=layout, count=20))
        name = f"keys-{layout.lower()}"
        yield SampleInput(*given, name=name, resized=SampleInput(*larger))
        given = unpaged(*attention_arguments(DEEPSEEK, device, layout=layout, count=count))
        yield SampleInput(*given, name=f"deepseek-{name}")
    if device == "cpu":  # NPUs have no fp64, which is for gradients.
        yield SampleInput(*attention_arguments(TINY, device, count=4), name="fp64-bsnd")
        given = unpaged(*attention_arguments(TINY, device, layout="TND", count=4))
        yield SampleInput(*given, name="fp64-keys-tnd")
    resized = _with_prefix_sums(DEEPSEEK_RESIZED, device, count=20)
    prefix_sums = _with_prefix_sums(DEEPSEEK, device, count=count)
    yield replace(prefix_sums, name="prefix-sums", resized=resized)


def gradient_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_sparse_flash_attention_grad."""
    for layout in ("BSND", "TND"):
        paged = attention_arguments(DISTINCT, device, layout=layout, count=50)
        yield SampleInput(*gradient_arguments(*paged), name=f"odd-paged-{layout.lower()}")
        larger = attention_arguments(DISTINCT_RESIZED, device, layout=layout, count=20)
        resized = SampleInput(*gradient_arguments(*unpaged(*larger)))
        given = gradient_arguments(*unpaged(*paged))
        yield SampleInput(*given, name=f"odd-{layout.lower()}", resized=resized)
    others = {"fp32": replace(DISTINCT, dtype=torch.float32)}
    others["fp16"] = replace(SMALL, tokens=2, dtype=torch.float16)
    if device == "cpu":  # NPUs have no fp64.
        others["fp64"] = TINY
    for name, sizes in others.items():
        given = gradient_arguments(*unpaged(*attention_arguments(sizes, device, count=4)))
        yield SampleInput(*given, name=name)
    # As CANN's own kernel takes it: whole sequences, 2048 positions.
    for layout in ("BSND", "TND"):
        for dtype in (torch.bfloat16, torch.float16):
            both = [
                gradient_arguments(
                    *_whole(*unpaged(*attention_arguments(each, device, 0, TOP_K, layout)))
                )
                for each in (
                    replace(DEEPSEEK_DISTINCT, dtype=dtype),
                    replace(DEEPSEEK_DISTINCT_RESIZED, dtype=dtype),
                )
            ]
            name = f"deepseek-{layout.lower()}-{str(dtype).removeprefix('torch.')}"
            yield SampleInput(*both[0], name=name, resized=SampleInput(*both[1]))


def _whole(
    arguments: tuple[Tensor, ...], keywords: dict[str, object]
) -> tuple[tuple[Tensor, ...], dict[str, object]]:
    """The same call without lengths of keys, where they are not needed: all are whole."""
    if keywords["layout_kv"] == "TND":
        return arguments, keywords
    return (*arguments[:6], None), keywords  # type: ignore[arg-type]


def _with_prefix_sums(sizes: Sizes, device: str, count: int) -> SampleInput:
    """An input whose query lengths are prefix sums: those above S1 mean S1."""
    arguments, keywords = attention_arguments(sizes, device, count=count)
    # The first sequence is not whole.
    ends = torch.arange(1, sizes.batch + 1) * sizes.tokens - 1
    lengths = Data(sizes, device).integers(ends)
    return SampleInput(arguments, {**keywords, "actual_seq_lengths_query": lengths})
