"""Seeded arguments of the ops: every layout, dtype and mode, at sizes that run in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from custom_pypto_plugin import SampleInput


@dataclass(frozen=True)
class Sizes:
    """The sizes of a sample; CANN's own kernel takes the defaults too."""

    key_lengths: Sequence[int]
    query_tokens: int = 2
    heads: int = 8
    key_heads: int = 1
    depth: int = 128
    block_size: int = 16
    dtype: torch.dtype = torch.bfloat16
    weights_dtype: torch.dtype | None = None
    lengths_dtype: torch.dtype = torch.int32
    seed: int = 0


DEEPSEEK_V32 = Sizes([522, 397], query_tokens=3, heads=64, block_size=128)
_SMALL = Sizes([37, 5, 64])
_LARGER = Sizes([70, 1, 129, 33], query_tokens=3, seed=1)

_FEW = 16
"""The positions that most samples select: torch.compile makes one graph of equal options."""


def lightning_indexer(device: str) -> Iterator[SampleInput]:
    """Samples on `device`."""
    yield paged(device, "paged", _SMALL, sparse_count=_FEW, resized=_LARGER)
    yield paged(device, "published-size", DEEPSEEK_V32)
    yield paged(device, "not-causal", _SMALL, sparse_mode=0, sparse_count=100)
    yield paged(device, "empty-rows", Sizes([0, 1, 40], query_tokens=4), sparse_count=_FEW)
    heads = Sizes([50, 9], heads=12, key_heads=3, depth=32)
    yield paged(device, "key-heads", heads, sparse_count=_FEW)
    yield paged(device, "odd-sizes", Sizes([23, 50], 1, 5, 1, 7, 3), sparse_count=_FEW)
    half = Sizes([200, 31], heads=33, block_size=48, dtype=torch.float16)
    yield paged(device, "float16", half, sparse_count=_FEW)
    for dtype in (torch.float16, torch.float32):
        sizes = Sizes([200, 31], heads=33, depth=40, block_size=50, dtype=dtype)
        yield paged(device, f"odd-sizes-{str(dtype).removeprefix('torch.')}", sizes)
    mixed = Sizes([90, 7], heads=64, weights_dtype=torch.float32, lengths_dtype=torch.int64)
    yield paged(device, "fp32-weights-int64-lengths", mixed, sparse_count=_FEW)
    int64 = replace(_SMALL, lengths_dtype=torch.int64)
    yield paged(device, "int64-lengths", int64)
    yield replace(
        _with_prefix_sums(device, "prefix-sums", int64),
        resized=_with_prefix_sums(device, "resized", replace(_LARGER, lengths_dtype=torch.int64)),
    )
    yield from _bsnd(device)
    yield from _tnd(device)


_QUANTISED = (
    "paged",
    "published-size",
    "empty-rows",
    "key-heads",
    "odd-sizes",
    "bsnd-lengths",
    "tnd",
)
"""Samples that are quantised to int8."""
_IN_E4M3 = ("paged", "tnd")
"""Samples that are quantised to float8 too. The simulated NPU has none."""
_OF_NPUS = ("not-causal", "fp32-weights-int64-lengths", "prefix-sums", "bsnd", "tnd-paged")
"""Further ones, on NPUs."""


def quant_lightning_indexer(device: str) -> Iterator[SampleInput]:
    """Samples of the quantised op on `device`."""
    for sample in lightning_indexer(device):
        if sample.name in _QUANTISED or (device != "cpu" and sample.name in _OF_NPUS):
            yield quantised(sample)
        if device == "cpu" and sample.name in _IN_E4M3:
            yield quantised(sample, torch.float8_e4m3fn)


def quantised(sample: SampleInput, dtype: torch.dtype = torch.int8) -> SampleInput:
    """A sample of npu_lightning_indexer_pto for npu_quant_lightning_indexer.

    Weights and scales are as CANN's own kernel takes them.
    """
    is_int8 = dtype == torch.int8
    query, key, weights = sample.args
    (query, query_scale), (key, key_scale) = (_quantise(x, dtype) for x in (query, key))
    if is_int8 and weights.dtype == torch.bfloat16:
        weights = weights.half()
    return replace(
        sample,
        args=(query, key, weights, query_scale, key_scale, 0, 0),
        kwargs={"layout_key": "PA_BSND", **sample.kwargs},
        name=sample.name if is_int8 else f"{sample.name}-e4m3",
        resized=None if sample.resized is None else quantised(sample.resized, dtype),
    )


def _quantise(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """[.., D] as int8 or float8_e4m3fn, and a scale for each row: float16, or float32."""
    if dtype == torch.int8:
        scale = x.float().abs().amax(-1, keepdim=True) / 127
        return (x / scale).round().to(dtype), scale.squeeze(-1).half()
    scale = x.float().abs().amax(-1, keepdim=True) / torch.finfo(dtype).max
    return (x / scale).to(dtype), scale.squeeze(-1)


def paged(
    device: str, name: str, sizes: Sizes, *, resized: Sizes | None = None, **options: Any
) -> SampleInput:
    """A sample with a paged key cache, blocks in random order, unused entries of the table -1."""
    generator = torch.Generator().manual_seed(sizes.seed)
    batch = len(sizes.key_lengths)
    needed = [-(-length // sizes.block_size) for length in sizes.key_lengths]
    blocks = torch.randperm(sum(needed) + 3, generator=generator, dtype=torch.int32, device="cpu")
    table = torch.full((batch, max(1, *needed)), -1, dtype=torch.int32, device="cpu")
    for row, (end, count) in enumerate(zip(accumulate(needed), needed, strict=True)):
        table[row, :count] = blocks[end - count : end]
    queries, keys = (batch, sizes.query_tokens), (len(blocks), sizes.block_size)
    return SampleInput(
        args=_tensors(device, sizes, queries, keys, generator),
        kwargs={
            "actual_seq_lengths_key": _integers(sizes.key_lengths, sizes, device),
            "block_table": table.to(sizes.lengths_dtype).to(device),
            **options,
        },
        name=name,
        resized=None if resized is None else paged(device, "resized", resized, **options),
    )


def _with_prefix_sums(device: str, name: str, sizes: Sizes) -> SampleInput:
    """A paged sample whose query lengths are prefix sums: those above S1 mean S1."""
    ends = [sizes.query_tokens * (b + 1) for b in range(len(sizes.key_lengths))]
    lengths = _integers(ends, sizes, device)
    return paged(device, name, sizes, actual_seq_lengths_query=lengths, sparse_count=_FEW)


def _bsnd(device: str) -> Iterator[SampleInput]:
    for name, key_heads, key_lengths, query_lengths in (
        ("bsnd", 1, None, None),
        ("bsnd-lengths", 1, [30, 0, 45], [2, 3, 0]),
        ("bsnd-prefix-sums", 1, [30, 20, 45], [2, 5, 8]),
        ("bsnd-key-heads", 2, [30, 0, 45], [2, 3, 0]),
    ):
        sizes = Sizes([45, 45, 45], query_tokens=3, heads=8, key_heads=key_heads, seed=2)
        yield SampleInput(
            args=_tensors(device, sizes, (3, sizes.query_tokens), (3, 45)),
            kwargs={
                "actual_seq_lengths_query": _integers(query_lengths, sizes, device),
                "actual_seq_lengths_key": _integers(key_lengths, sizes, device),
                "layout_key": "BSND",
                "sparse_count": _FEW,
            },
            name=name,
        )


def _tnd(device: str) -> Iterator[SampleInput]:
    sizes = Sizes([40, 0, 17, 80], seed=3)
    query_ends, key_ends = [3, 5, 5, 9], list(accumulate(sizes.key_lengths))
    query, key, weights = _tensors(device, sizes, (query_ends[-1],), (key_ends[-1],))
    options = {
        "actual_seq_lengths_query": _integers(query_ends, sizes, device),
        "layout_query": "TND",
        "sparse_count": _FEW,
    }
    of_keys = {"actual_seq_lengths_key": _integers(key_ends, sizes, device), "layout_key": "TND"}
    packed = SampleInput((query, key, weights), {**options, **of_keys}, "tnd")
    yield packed
    cache = paged(device, "", sizes)
    yield SampleInput((query, cache.args[1], weights), {**cache.kwargs, **options}, "tnd-paged")
    if device == "cpu":  # On NPUs rows of padding hold anything.
        ends = {
            "actual_seq_lengths_query": _integers([2, 3, 3, 7], sizes, device),
            "actual_seq_lengths_key": _integers([each - 5 for each in key_ends], sizes, device),
        }
        yield replace(packed, kwargs={**packed.kwargs, **ends}, name="tnd-padded")


def with_values(device: str) -> Iterator[SampleInput]:
    """Samples of npu_lightning_indexer on `device`."""
    yield paged(device, "paged", _SMALL, sparse_count=_FEW, layout_key="PA_BSND", resized=_LARGER)
    for sample in (*_bsnd(device), *_tnd(device)):
        # Paged keys have no values.
        if "block_table" not in sample.kwargs:
            yield replace(sample, kwargs={**sample.kwargs, "return_value": True})
    yield trained(device, "whole", Sizes([90], 3), resized=Sizes([75], 5))
    if device == "cpu":  # NPUs have no fp64, which is for gradients.
        yield trained(device, "fp64", Sizes([5, 5], 2, 4, 2, 3, dtype=torch.float64), count=3)


def trained(
    device: str, name: str, sizes: Sizes, *, count: int = _FEW, resized: Sizes | None = None
) -> SampleInput:
    """Whole sequences of one length, with values."""
    batch, keys = len(sizes.key_lengths), sizes.key_lengths[0]
    return SampleInput(
        args=_tensors(device, sizes, (batch, sizes.query_tokens), (batch, keys)),
        kwargs={"sparse_count": count, "return_value": True},
        name=name,
        resized=None if resized is None else trained(device, "resized", resized, count=count),
    )


def gradients(device: str) -> Iterator[SampleInput]:
    """Samples of npu_lightning_indexer_grad: of calls with values, and some that CANN takes."""
    for sample in with_values("cpu"):
        if sample.kwargs.get("return_value") and (device == "cpu" or sample.name != "fp64"):
            yield _gradient(device, sample)
    for dtype in (torch.bfloat16, torch.float16):
        for layout in ("BSND", "TND"):
            both = []
            for batch, tokens, keys in ((3, 2, 40), (5, 4, 50)):
                sizes = Sizes([keys] * batch, tokens, 64, dtype=dtype)
                sample = trained("cpu", "", sizes, count=2048)
                both.append(_gradient(device, sample if layout == "BSND" else _flat(sample)))
            name = f"cann-{layout.lower()}-{str(dtype).removeprefix('torch.')}"
            yield replace(both[0], name=name, resized=both[1])


def _flat(sample: SampleInput) -> SampleInput:
    """A sample of whole sequences in the layout TND."""
    batch, tokens = sample.args[0].shape[:2]
    number = torch.arange(1, batch + 1, dtype=torch.int32, device="cpu")
    return SampleInput(
        tuple(each.flatten(0, 1) for each in sample.args),
        {
            **sample.kwargs,
            "actual_seq_lengths_query": number * tokens,
            "actual_seq_lengths_key": number * sample.args[1].shape[1],
            "layout_query": "TND",
            "layout_key": "TND",
        },
    )


def _gradient(device: str, sample: SampleInput) -> SampleInput:
    query, key, weights = sample.args
    indices, values = torch.ops.custom_pypto.npu_lightning_indexer(*sample.args, **sample.kwargs)
    generator = torch.Generator().manual_seed(0)
    dy = torch.randn(values.shape, generator=generator, device="cpu").to(values.dtype)
    lengths = [sample.kwargs.get(f"actual_seq_lengths_{name}") for name in ("query", "key")]
    given = (query, key, dy, indices, weights, *lengths)
    return SampleInput(
        tuple(None if each is None else each.to(device) for each in given),
        {"layout": sample.kwargs.get("layout_query", "BSND")},
        sample.name,
        None if sample.resized is None else _gradient(device, sample.resized),
    )


def _tensors(
    device: str,
    sizes: Sizes,
    queries: tuple[int, ...],
    keys: tuple[int, ...],
    generator: torch.Generator | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """query [*queries, N1, D], key [*keys, N2, D] and weights [*queries, N1] of both signs."""
    generator = generator or torch.Generator().manual_seed(sizes.seed)
    query = torch.randn((*queries, sizes.heads, sizes.depth), generator=generator, device="cpu")
    weights = torch.randn((*queries, sizes.heads), generator=generator, device="cpu")
    key = torch.randn((*keys, sizes.key_heads, sizes.depth), generator=generator, device="cpu")
    return (
        query.to(sizes.dtype).to(device),
        key.to(sizes.dtype).to(device),
        weights.to(sizes.weights_dtype or sizes.dtype).to(device),
    )


def _integers(values: Sequence[int] | None, sizes: Sizes, device: str) -> torch.Tensor | None:
    if values is None:
        return None
    return torch.tensor(values, dtype=sizes.lengths_dtype, device=device)
