"""Attention by torch to keys and values that kv_b_proj expands once for all queries.

A query, head and key of DeepSeek-V3.2 take 640 FLOPs here, and 2176 in the op, which multiplies by
latents. But torch multiplies by all keys up to a chunk's last one, and the op by those selected.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from custom_pypto import core
from torch import Tensor
from torch.nn.functional import linear, pad, scaled_dot_product_attention

from .fallback import selection_mask

# How long a FLOP of torch takes beside one of the op, as measured; on others the op stays.
_COST = {"avx2": 1.5, "avx512": 2.0, "avx512_bf16": 2.0, "amx_bf16": 2.0}
_COST_IN_TILES = 1.8  # both multiply bf16
# Fewer queries do not make up for the expansion.
_LEAST_QUERIES = 32
# Of keys and values expanded at once, or a head for four threads; more is slower: fresh memory.
_MOST_BYTES = 2**26


@functools.cache
def _cost(dtype: torch.dtype) -> tuple[torch.dtype, float | None]:
    """Return in which dtype torch is fastest, and the cost of its FLOPs; None if not known."""
    isa = str(core.cpu_isa("sparse_attention"))
    if dtype == torch.bfloat16 and isa == "amx_bf16":
        return dtype, _COST_IN_TILES
    return torch.float32, _COST.get(isa)


def chunks_that_pay(
    module: Any, query: Tensor, keys: int, indices: Sequence[Tensor]
) -> dict[int, int]:
    """Return {number: keys} of the chunks of queries for which expanded keys take less time."""
    cost, value, latent = _cost(query.dtype)[1], module.v_head_dim, module.kv_lora_rank
    batch, _, tokens, size = query.shape
    if cost is None or batch * tokens < _LEAST_QUERIES or value > size:
        return {}
    # FLOPs of a head; the op multiplies each query by the weights that expand a key.
    expansion = 2 * latent * (module.qk_nope_head_dim + value)
    ends, saved = {}, 0.0
    for number, chunk in enumerate(indices):
        rows, end = batch * chunk.shape[1], int(chunk.max().clamp(min=0)) + 1
        products = 2 * int((chunk >= 0).sum()) * (2 * latent + module.qk_rope_head_dim)
        gain = expansion * rows + products - cost * 2 * rows * end * (size + value)
        if gain > 0 and end <= keys:
            ends[number] = end
            saved += gain
    return ends if saved > cost * expansion * batch * max(ends.values(), default=0) else {}


def attend_expanded(
    module: Any,
    query: Tensor,
    latents: Tensor,
    ropes: Tensor,
    indices: Sequence[Tensor],
    scale: float,
) -> dict[int, Tensor]:
    """Attend to selected keys where expanding them pays.

    Args:
        module: the attention layer.
        query: [B, N, S, P + R].
        latents, ropes: [B, T, L] and [B, T, R].
        indices: of each chunk of queries, [B, s, K], the selected positions; -1 for none.
        scale: the factor of the products before the softmax.

    Returns:
        [B, s, N, V] by the number of the chunk; zeros where nothing is selected.
    """
    ends = chunks_that_pay(module, query, latents.shape[1], indices)
    if not ends:
        return {}
    (batch, heads, _, size), value = query.shape, module.v_head_dim
    nope, dtype, keys = module.qk_nope_head_dim, _cost(query.dtype)[0], max(ends.values())
    latents, ropes = latents[:, :keys].to(dtype), ropes[:, None, :keys].to(dtype)
    queries = torch.split(query.transpose(1, 2), indices[0].shape[1], 1)
    outs = {number: torch.empty_like(queries[number][..., :value]) for number in ends}
    weights = module.kv_b_proj.weight.view(heads, nope + value, -1)
    of_head = (3 * size + value) * batch * keys * dtype.itemsize
    step = max(1, torch.get_num_threads() // (4 * batch), _MOST_BYTES // of_head)
    for begin in range(0, heads, step):
        some = slice(begin, begin + step)
        rows = linear(latents, weights[some].flatten(0, 1).to(dtype))
        rows = rows.view(batch, keys, -1, nope + value).transpose(1, 2)
        key = torch.cat([rows[..., :nope], ropes.expand(-1, rows.shape[1], -1, -1)], -1)
        # torch is slow where keys and values differ in size.
        values = pad(rows[..., nope:], (0, size - value))
        for number, end in ends.items():
            asked = queries[number][:, :, some].transpose(1, 2).to(dtype)
            out = scaled_dot_product_attention(
                asked,
                key[:, :, :end],
                values[:, :, :end],
                selection_mask(indices[number], end),
                scale=scale,
            )
            outs[number][:, :, some] = out[..., :value].transpose(1, 2)
    return outs
