"""The indexers on emulated kernels: Python does the rest of the ops' C++."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from emulator import ELEMENTS, Argument, Emulated, offset, tensor_of
from torch import Tensor

SELECT = 1
UNSPLIT = 1 << 62

Scales = tuple[Tensor, Tensor]
"""The scales of query [.., N1] and of key [.., N2]."""


@dataclass(frozen=True)
class Keys:
    """A sequence's keys: [tokens, N2, D], or, with `blocks`, [all blocks, block size, N2, D]."""

    tensor: Tensor
    tokens: int
    blocks: Tensor | None = None

    def message(self, head: int) -> list[Argument]:
        """Return the fields of the kernels' `Keys`, without the blocks."""
        keys = self.tensor[..., head, :]
        paged = self.blocks is not None
        return [
            offset(keys),
            keys.size(1) if paged else 0,
            keys.stride(0) if paged else 0,
            keys.stride(-2),
            keys.stride(-1),
            keys.size(-1),
        ]


def select(
    kernels: Emulated,
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "PA_BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    scales: Scales | None = None,
    split: int = UNSPLIT,
) -> Tensor:
    """Run npu_lightning_indexer_pto without checks, or with `scales` npu_quant_lightning_indexer.

    The kernels score `split` tokens at a time.
    """
    out = torch.full((*query.shape[:-2], key.shape[-2], sparse_count), -1, dtype=torch.int32)
    spans = _spans(query, layout_query, actual_seq_lengths_query)
    # Only int8 kernels read the scales.
    query_scales, key_scales = scales or (weights.new_zeros(weights.shape), key[..., 0])
    sequences = zip(
        _keys(key, layout_key, actual_seq_lengths_key, block_table),
        _keys(key_scales.unsqueeze(-1), layout_key, actual_seq_lengths_key, block_table),
        strict=True,
    )
    message: list[Argument] = []
    places: list[Tensor] = []
    for at, (keys, scales_of_keys) in zip(spans, sequences, strict=True):
        later = range(len(out[at]) - 1, -1, -1)  # tokens after each row's own
        visible = [max(0, keys.tokens - n * (sparse_mode == 3)) for n in later]
        if not any(visible):
            continue
        group = query.shape[-2] // key.shape[-2]
        for head in range(key.shape[-2]):
            heads = slice(head * group, (head + 1) * group)
            message.append(keys.blocks if keys.blocks is not None else b"")
            message += keys.message(head)
            message += scales_of_keys.message(head)
            message += _rows(*(x[at][:, heads] for x in (query, weights, query_scales)))
            message.append(torch.tensor(visible))
            places.append(out[at][:, head])
    call: list[Argument] = [split, sparse_count]
    for tensor in (query, key, weights, query_scales, key_scales):
        call += [ELEMENTS[tensor.dtype], tensor]
    answers = kernels.call(SELECT, [*call, len(places), *message], answers=len(places))
    for place, answer in zip(places, answers, strict=True):
        place.copy_(tensor_of(answer, torch.int32, *place.shape))
    return out


def select_int8(
    kernels: Emulated,
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    query_dequant_scale: Tensor,
    key_dequant_scale: Tensor,
    query_quant_mode: int,
    key_quant_mode: int,
    **options: Any,
) -> Tensor:
    """Run npu_quant_lightning_indexer without checks."""
    assert query_quant_mode == key_quant_mode == 0
    scales = (query_dequant_scale, key_dequant_scale)
    return select(kernels, query, key, weights, scales=scales, **options)


Place = slice | tuple[int, slice]
"""The index of one sequence's tokens in a tensor of tokens."""


def _spans(tensor: Tensor, layout: str, lengths: Tensor | None) -> Sequence[Place]:
    if layout == "TND":
        assert lengths is not None
        ends = lengths.tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    sizes = [tensor.shape[1]] * tensor.shape[0] if lengths is None else lengths.tolist()
    return [(b, slice(size)) for b, size in enumerate(sizes)]


def _keys(
    key: Tensor, layout: str, lengths: Tensor | None, block_table: Tensor | None
) -> Sequence[Keys]:
    if block_table is None:
        parts = [key[at] for at in _spans(key, layout, lengths)]
        return [Keys(part, len(part)) for part in parts]
    assert lengths is not None
    needed = [(tokens, -(-tokens // key.shape[1])) for tokens in lengths.tolist()]
    return [
        Keys(key, tokens, row[:count].to(torch.int32, copy=True).contiguous())
        for row, (tokens, count) in zip(block_table, needed, strict=True)
    ]


def _rows(query: Tensor, weights: Tensor, scales: Tensor) -> list[Argument]:
    """Return the fields of the kernels' `Query`, from [S1, G, D] and twice [S1, G]."""
    return [
        *(offset(query), *query.stride()),
        *(offset(weights), *weights.stride()),
        *(offset(scales), *scales.stride()),
        query.shape[1],
    ]
