"""The ops in plain PyTorch, step by step: slow, readable, independent of the kernels.

Products and sums are taken in fp32, or in fp64 when the activations are fp32; a value is rounded to
the activation dtype exactly where the definition in README.md says ``r()``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from torch import Tensor

from .ops import LAYER_NORM_EPSILON, RMS_EPSILON, TOP_K


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which the reference computes for activations of ``dtype``."""
    return torch.float64 if dtype in (torch.float32, torch.float64) else torch.float32


def plain_weight(weight: Tensor) -> Tensor:
    """[K, N] from a plain [K, N] matrix or from its fractal NZ order [N/16, K, 16]."""
    if weight.dim() == 2:
        return weight
    panels, depth, lanes = weight.shape
    return weight.permute(1, 0, 2).reshape(depth, panels * lanes)


def project(x: Tensor, weight: Tensor) -> Tensor:
    """x [T, K] @ weight, not rounded: [T, N] in the wide dtype."""
    dtype = wide(x.dtype)
    return x.to(dtype) @ plain_weight(weight).to(dtype)


def rms_norm(x: Tensor, gamma: Tensor) -> Tensor:
    """x [T, C] over its root mean square, times gamma [C]; in the wide dtype."""
    values = x.to(wide(x.dtype))
    mean = values.square().mean(-1, keepdim=True)
    return values / torch.sqrt(mean + RMS_EPSILON) * gamma.to(values.dtype)


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """x [T, C], already wide, with mean 0 and variance 1, times gamma [C], plus beta [C]."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + LAYER_NORM_EPSILON) * gamma.to(x.dtype) + beta.to(
        x.dtype
    )


def rope(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """Rotate x [T, heads, R] by sin and cos [T, R]: even dims first, then odd ones; x's dtype."""
    dtype = wide(x.dtype)
    even, odd = x[..., 0::2].to(dtype), x[..., 1::2].to(dtype)
    halves = torch.cat((even, odd), -1)
    crossed = torch.cat((-odd, even), -1)
    rotated = halves * cos.to(dtype).unsqueeze(-2) + crossed * sin.to(dtype).unsqueeze(-2)
    return rotated.to(x.dtype)


def rope_first(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """``rope`` on the first R dims of x [T, heads, D], where sin and cos are [T, R]."""
    rotated = sin.shape[-1]
    return torch.cat((rope(x[..., :rotated], sin, cos), x[..., rotated:]), -1)


def scatter(cache: Tensor, slots: Tensor, rows: Tensor) -> None:
    """Write rows [T, D] to cache [blocks, block_size, 1, D]; of equal slots the last token wins."""
    block_size = cache.shape[1]
    for slot, row in zip(slots.flatten().tolist(), rows, strict=True):
        cache[slot // block_size, slot % block_size, 0] = row


def mla_prolog(
    x: Tensor,
    w_dq: Tensor,
    w_uq_qr: Tensor,
    w_uk: Tensor,
    w_dkv_kr: Tensor,
    gamma_cq: Tensor,
    gamma_ckv: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """``npu_mla_prolog``: query [.., N1, L], query_rope [.., N1, R], q_norm [.., Q]."""
    leading, dtype = x.shape[:-1], x.dtype
    tokens = x.flatten(0, -2)
    sin, cos = sin.flatten(0, -2), cos.flatten(0, -2)
    heads, nope_size, latent_size = w_uk.shape

    q_norm = rms_norm(project(tokens, w_dq).to(dtype), gamma_cq).to(dtype)
    q = project(q_norm, w_uq_qr).to(dtype).reshape(len(tokens), heads, nope_size + sin.shape[-1])
    nope = q[..., :nope_size].to(wide(dtype))
    query = torch.einsum("tnd,ndl->tnl", nope, w_uk.to(nope.dtype)).to(dtype)
    query_rope = rope(q[..., nope_size:], sin, cos)

    kv = project(tokens, w_dkv_kr).to(dtype)
    latent = rms_norm(kv[:, :latent_size], gamma_ckv).to(dtype)
    key_rope = rope(kv[:, None, latent_size:], sin, cos)[:, 0]
    scatter(kv_cache, cache_index, latent)
    scatter(kr_cache, cache_index, key_rope)
    return (
        query.reshape(*leading, heads, latent_size),
        query_rope.reshape(*leading, *query_rope.shape[1:]),
        q_norm.reshape(*leading, *q_norm.shape[1:]),
    )


def indexer_prolog(
    x: Tensor,
    q_norm: Tensor,
    w_idx_qb: Tensor,
    w_idx_k: Tensor,
    w_idx_proj: Tensor,
    in_gamma_k: Tensor,
    in_beta_k: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    index_k_cache: Tensor,
) -> tuple[Tensor, Tensor]:
    """``npu_indexer_prolog``: query_index [.., N, D], weights [.., N]."""
    leading, dtype = x.shape[:-1], x.dtype
    tokens = x.flatten(0, -2)
    sin, cos = sin.flatten(0, -2), cos.flatten(0, -2)
    head_size = index_k_cache.shape[-1]

    weights = project(tokens, w_idx_proj).to(dtype)
    query = project(q_norm.flatten(0, -2), w_idx_qb).to(dtype)
    query = rope_first(query.reshape(*weights.shape, head_size), sin, cos)
    key = layer_norm(project(tokens, w_idx_k), in_gamma_k, in_beta_k).to(dtype)
    scatter(index_k_cache, cache_index, rope_first(key[:, None], sin, cos)[:, 0])
    return query.reshape(*leading, *query.shape[1:]), weights.reshape(*leading, *weights.shape[1:])


def index_scores(query: Tensor, weights: Tensor, keys: Tensor) -> Tensor:
    """Scores [n] of keys [n, D] for one token's query [N, D] and weights [N]; wide."""
    dtype = wide(query.dtype)
    dots = query.to(dtype) @ keys.to(dtype).T
    return weights.to(dtype) @ dots.clamp_min(0)


def select(scores: Tensor, count: int) -> Tensor:
    """Positions of the ``count`` largest scores, descending, equal ones by position; int32."""
    return scores.sort(descending=True, stable=True).indices[:count].to(torch.int32)


def row_lengths(query: Tensor, lengths_query: Tensor | None, batch: int) -> list[tuple[int, int]]:
    """Each query row's sequence, and the number of tokens from it to the end; -1: padding."""
    if query.dim() == 4:
        size = query.shape[1]
        lengths = [size] * batch
        if lengths_query is not None:
            lengths = lengths_query.clamp(max=size).tolist()
        return [
            (b, lengths[b] - s) if s < lengths[b] else (-1, 0)
            for b in range(batch)
            for s in range(size)
        ]
    if lengths_query is None:
        raise ValueError("a TND query needs actual_seq_lengths_query")
    rows: list[tuple[int, int]] = []
    begin = 0
    for b, end in enumerate(lengths_query.tolist()):
        rows += [(b, end - token) for token in range(begin, end)]
        begin = end
    return rows + [(-1, 0)] * (len(query) - begin)


def sequences_of_keys(
    keys: Tensor, layout: str, block_table: Tensor | None, lengths: Tensor | None
) -> list[Tensor]:
    """Where each sequence's keys are among all rows of a cache: [length] int64."""
    if layout == "TND":
        assert lengths is not None
        return [torch.arange(*ends, device="cpu") for ends in pairwise([0, *lengths.tolist()])]
    size = keys.shape[1]
    if layout == "BSND":
        counts = [size] * len(keys) if lengths is None else lengths.tolist()
        return [
            torch.arange(b * size, b * size + count, device="cpu") for b, count in enumerate(counts)
        ]
    assert block_table is not None
    assert lengths is not None
    slots = []
    for table, length in zip(block_table.to(torch.int64), lengths.tolist(), strict=True):
        positions = torch.arange(length, device=table.device)
        slots.append(table[positions // size] * size + positions % size)
    return slots


def selected_slots(sequence: Tensor, indices: Tensor, remaining: int, mode: int) -> Tensor:
    """The rows of a cache that a token attends to, `remaining` before its sequence's end."""
    visible = len(sequence) - (remaining - 1 if mode == 3 else 0)
    positions = indices.to(torch.int64)
    positions = positions[(positions >= 0) & (positions < visible)]
    return sequence.to(positions.device)[positions]


def sparse_flash_attention(
    query: Tensor,
    query_rope: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor | None = None,
    actual_seq_lengths_kv: Tensor | None = None,
    *,
    scale: float,
    actual_seq_lengths_query: Tensor | None = None,
    sparse_mode: int = 3,
    return_softmax_lse: bool = False,
    layout_kv: str = "PA_BSND",
) -> tuple[Tensor, Tensor]:
    """``npu_sparse_flash_attention``: (out like query, lse [.., N1] fp32 or [0])."""
    heads, latent_size = query.shape[-2:]
    dtype = wide(query.dtype)
    sequences = sequences_of_keys(kv_cache, layout_kv, block_table, actual_seq_lengths_kv)
    rows = row_lengths(query, actual_seq_lengths_query, len(sequences))
    latents, ropes = kv_cache.flatten(0, -3)[:, 0], kr_cache.flatten(0, -3)[:, 0]
    queries = torch.cat((query, query_rope), -1).flatten(0, -3)
    indices = sparse_indices.flatten(0, -3).squeeze(1)
    out = query.new_zeros(len(rows), heads, latent_size)
    lse = query.new_full((len(rows), heads), -torch.inf, dtype=torch.float32)
    for row, (b, remaining) in enumerate(rows):
        if b < 0:
            continue
        slots = selected_slots(sequences[b], indices[row], remaining, sparse_mode)
        if len(slots) == 0:
            continue
        latent = latents[slots].to(dtype)
        keys = torch.cat((latent, ropes[slots].to(dtype)), -1)
        logits = queries[row].to(dtype) @ keys.T * scale
        out[row] = (torch.softmax(logits, -1) @ latent).to(out.dtype)
        lse[row] = torch.logsumexp(logits, -1).to(torch.float32)
    shape = query.shape[:-1]
    return out.reshape(query.shape), lse.reshape(shape) if return_softmax_lse else lse.new_empty(0)


@dataclass(frozen=True)
class Decoded:
    """The fused op's intermediate results: its query, and each row's index scores."""

    query: Tensor
    query_rope: Tensor
    scores: tuple[Tensor, ...]

    def selection(self, count: int = TOP_K) -> Tensor:
        """Each row's chosen positions, descending by score, filled with -1: [B, S1, 1, count]."""
        indices = torch.full((len(self.scores), count), -1, dtype=torch.int32, device="cpu")
        for row, scores in zip(indices, self.scores, strict=True):
            row[: min(count, len(scores))] = select(scores, count).to(row.device)
        batch, size = self.query.shape[:2]
        return indices.reshape(batch, size, 1, count).to(self.query.device)


def arguments_of(function: Callable[..., Any], given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The given arguments that `function` has as parameters, in its order."""
    return {name: given[name] for name in inspect.signature(function).parameters}


def decode(given: Mapping[str, Tensor]) -> Decoded:
    """Every step of the fused op before the selection; fills the three caches."""
    query, query_rope, q_norm = mla_prolog(**arguments_of(mla_prolog, given))
    given = {**given, "q_norm": q_norm}
    query_index, weights = indexer_prolog(**arguments_of(indexer_prolog, given))
    x, cache = given["x"], given["index_k_cache"]
    scores = []
    sequences = sequences_of_keys(cache, "PA_BSND", given["block_table"], given["act_seqs"])
    for b, slots in enumerate(sequences):
        keys = cache.flatten(0, 2)[slots]
        for s in range(x.shape[1]):
            visible = max(len(keys) - x.shape[1] + 1 + s, 0)
            scores.append(index_scores(query_index[b, s], weights[b, s], keys[:visible]))
    return Decoded(query, query_rope, tuple(scores))


def attend(decoded: Decoded, given: Mapping[str, Tensor], selection: Tensor) -> Tensor:
    """The fused op's output for a selection of positions; `decode` has filled the caches."""
    kv_cache, kr_cache = given["kv_cache"], given["kr_cache"]
    out, _ = sparse_flash_attention(
        decoded.query,
        decoded.query_rope,
        kv_cache,
        kr_cache,
        selection,
        given["block_table"],
        given["act_seqs"],
        scale=(kv_cache.shape[-1] + kr_cache.shape[-1]) ** -0.5,
    )
    return out


def sparse_attention(*args: Tensor, **kwargs: Tensor) -> Tensor:
    """``npu_sparse_attention_pto``: [B, S1, N1, L]; fills the three caches."""
    given = bind_arguments(contract("npu_sparse_attention_pto"), args, kwargs)
    decoded = decode(given)
    return attend(decoded, given, decoded.selection())
