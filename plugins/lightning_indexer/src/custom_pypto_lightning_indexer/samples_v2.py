"""Seeded arguments of the second version of the ops, made of those of the first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from custom_pypto_plugin import SampleInput

from . import reference, samples

_RATIOS = {"paged": 4, "bsnd": 128, "tnd": 3}
"""The samples that compressed samples are made of, too."""
_SECOND = (*_RATIOS, "published-size", "empty-rows", "key-heads", "odd-sizes", "float16")
_OF_NPUS = ("not-causal", "tnd-paged")
_OF_CPU = ("odd-sizes-float32", "bsnd-lengths", "bsnd-key-heads", "tnd-padded")
_UNQUANTISED = ("float16", "odd-sizes-float32", "bsnd-key-heads")
"""No quantised sample on a CPU is made of these."""


def lightning_indexer(device: str) -> Iterator[SampleInput]:
    """Samples of npu_lightning_indexer_v2 on `device`."""
    for sample in _first(device):
        yield from _second(_with_fp32_weights(sample))


def _with_fp32_weights(sample: SampleInput) -> SampleInput:
    query, key, weights = sample.args
    resized = None if sample.resized is None else _with_fp32_weights(sample.resized)
    return replace(sample, args=(query, key, weights.float()), resized=resized)


def quant_lightning_indexer(device: str) -> Iterator[SampleInput]:
    """Samples of npu_quant_lightning_indexer_v2 on `device`."""
    for sample in _first(device):
        if device == "cpu" and sample.name in _UNQUANTISED:
            continue
        yield from _second(samples.quantised(sample))
        if device == "cpu" and sample.name == "paged":
            yield from _second(samples.quantised(sample, torch.float8_e4m3fn))


def _first(device: str) -> Iterator[SampleInput]:
    names = (*_SECOND, *(_OF_CPU if device == "cpu" else _OF_NPUS))
    for sample in samples.lightning_indexer(device):
        if sample.name in names:
            yield sample


def _second(sample: SampleInput) -> Iterator[SampleInput]:
    """A call with positions alone, or one of compressed keys with all that the op has."""
    yield second(sample)
    ratio = _RATIOS.get(sample.name.removesuffix("-e4m3"))
    if ratio is not None:
        yield replace(second(sample, ratio), name=f"{sample.name}-compressed")


def second(sample: SampleInput, ratio: int = 1) -> SampleInput:
    """A sample of npu_lightning_indexer_pto, or of the quantised op, for the second version.

    With a ratio it has residuals, offsets, metadata and values.
    """
    given: dict[str, Any] = {
        **{f"actual_seq_lengths_{name}": None for name in ("query", "key")},
        "layout_query": "BSND",
        "layout_key": "PA_BSND",
        "sparse_mode": 3,
        "sparse_count": 2048,
        **sample.kwargs,
    }
    tensors = sample.args[:5]
    query, key = tensors[:2]
    options = reference.as_second_version({**given, "query": query})
    count = options.pop("topk")
    if ratio > 1:
        sums = options["cu_seqlens_q"]
        batch = len(query) if sums is None else len(sums) - 1
        rows = query[..., 0, 0].numel() * key.shape[-2]
        offsets = torch.arange(rows, dtype=torch.int32, device="cpu")
        residual = torch.arange(batch, dtype=torch.int32, device="cpu") % ratio
        options |= {
            "cmp_ratio": ratio,
            "cmp_residual_k": residual.to(query.device),
            "output_idx_offset": offsets.view(*query.shape[:-2], -1).to(query.device),
            "metadata": torch.zeros(1024, dtype=torch.int32, device=query.device),
            "return_value": 1,
        }
    mode = () if len(tensors) == 3 else (2 if query.dtype == torch.int8 else 1,)
    return SampleInput(
        (*tensors, count, *mode),
        {name: value for name, value in options.items() if value is not None},
        sample.name,
        None if sample.resized is None else second(sample.resized, ratio),
    )
