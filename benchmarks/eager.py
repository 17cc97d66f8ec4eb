"""The baseline: DeepSeek sparse attention in plain PyTorch, as a careful author writes it.

Every function computes what the plugins' READMEs define and passes the accuracy rule of the op
itself; matrix products are in the tensors' own dtype wherever that passes. Ragged batches are
looped over, so that no time is spent on padding; each body works on whole matrices, so that the
work is in PyTorch's matrix kernels. `Baseline.compiled()` runs the same bodies through
torch.compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch._dynamo
from custom_pypto_sparse_attention.ops import TOP_K
from torch import Tensor
from torch.nn import functional


class FusedArguments(NamedTuple):
    """The twenty tensors of npu_sparse_attention_pto, in the order of its schema."""

    x: Tensor
    w_dq: Tensor
    w_uq_qr: Tensor
    w_uk: Tensor
    w_dkv_kr: Tensor
    gamma_cq: Tensor
    gamma_ckv: Tensor
    sin: Tensor
    cos: Tensor
    cache_index: Tensor
    kv_cache: Tensor
    kr_cache: Tensor
    block_table: Tensor
    act_seqs: Tensor
    w_idx_qb: Tensor
    w_idx_k: Tensor
    w_idx_proj: Tensor
    in_gamma_k: Tensor
    in_beta_k: Tensor
    index_k_cache: Tensor


def rope(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """Rotate the last dimension of x: de-interleave pairs, then rotate halves, in fp32.

    x is [T, ..., R]; sin and cos are [T, R] and broadcast over the dimensions between.
    """
    shape = (x.shape[0], *(1,) * (x.dim() - 2), x.shape[-1])
    halves = x.float().view(*x.shape[:-1], -1, 2).transpose(-1, -2)
    rotated = torch.stack((-halves[..., 1, :], halves[..., 0, :]), dim=-2)
    sin, cos = sin.float().view(shape), cos.float().view(shape)
    out: Tensor = halves.flatten(-2) * cos + rotated.flatten(-2) * sin
    return out.to(x.dtype)


def rms_norm(x: Tensor, gamma: Tensor, eps: float = 1e-5) -> Tensor:
    """Scale the last dimension of x to unit mean square (in fp32) and by gamma."""
    return functional.rms_norm(x.float(), gamma.shape, gamma.float(), eps).to(x.dtype)


def cached_rows(
    x: Tensor, sin: Tensor, cos: Tensor, weights: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the rows of the three caches for x [T, H] and angles [T, R].

    Returns (latent [T, L], key_rope [T, R], index_key [T, DI]).
    """
    compressed = x @ weights["w_dkv_kr"]
    latent = len(weights["gamma_ckv"])
    gamma, beta = weights["in_gamma_k"].float(), weights["in_beta_k"].float()
    index_key = functional.layer_norm(
        (x @ weights["w_idx_k"]).float(), gamma.shape, gamma, beta, 1e-6
    ).to(x.dtype)
    return (
        rms_norm(compressed[:, :latent], weights["gamma_ckv"]),
        rope(compressed[:, latent:], sin, cos),
        _rope_first(index_key, sin, cos),
    )


def project(a: FusedArguments) -> tuple[Tensor, ...]:
    """Run both prologs on x [T, H] and angles [T, R].

    Returns (query [T, N1, L], query_rope [T, N1, R], latent [T, L], key_rope [T, R],
    index_key [T, DI], index_query [T, NI, DI], index_weights [T, NI]).
    """
    heads, nope, _ = a.w_uk.shape
    query_latent = rms_norm(a.x @ a.w_dq, a.gamma_cq)
    query = (query_latent @ a.w_uq_qr).view(-1, heads, nope + a.sin.shape[-1])
    absorbed = torch.bmm(query[..., :nope].transpose(0, 1), a.w_uk).transpose(0, 1)
    query_rope = rope(query[..., nope:], a.sin, a.cos)
    index_query = (query_latent @ a.w_idx_qb).view(len(query), -1, a.w_idx_k.shape[1])
    rows = cached_rows(a.x, a.sin, a.cos, a._asdict())
    index_query = _rope_first(index_query, a.sin, a.cos)
    return absorbed, query_rope, *rows, index_query, a.x @ a.w_idx_proj


def project_in_fp32(a: FusedArguments) -> tuple[Tensor, ...]:
    """Run both prologs as project does, with products in fp32; weights may be widened already."""
    widened = {
        name: value.float()
        for name, value in a._asdict().items()
        if value.is_floating_point() and not name.endswith("cache")
    }
    return tuple(result.to(a.x.dtype) for result in project(a._replace(**widened)))


def _rope_first(x: Tensor, sin: Tensor, cos: Tensor) -> Tensor:
    """Rotate the first R numbers of the last dimension of x."""
    rotary = sin.shape[-1]
    return torch.cat((rope(x[..., :rotary], sin, cos), x[..., rotary:]), -1)


def select_in_sequence(query: Tensor, key: Tensor, weights: Tensor, count: int) -> Tensor:
    """Choose the best keys for the S1 last tokens of one sequence, right-down causal.

    query is [S1, N1, D], key [S2, D], weights [S1, N1]. Returns [S1, count] int32, descending by
    score, -1 where a token sees fewer than count keys. Scores are fp32: bf16 ones would change
    several of 2048 keys where at most one may differ.
    """
    return select_in_tensor_dtype(query.float(), key.float(), weights.float(), count)


def select_in_tensor_dtype(query: Tensor, key: Tensor, weights: Tensor, count: int) -> Tensor:
    """Choose like select_in_sequence, with scores in the dtype of the tensors."""
    tokens, heads, size = query.shape
    length = key.shape[0]
    dots = (query.reshape(-1, size) @ key.t()).relu_().view(tokens, heads, length)
    scores = torch.bmm(weights.unsqueeze(1), dots).squeeze(1).float()
    if tokens > 1:
        limits = torch.arange(length - tokens + 1, length + 1).unsqueeze(1)
        scores.masked_fill_(torch.arange(length) >= limits, -torch.inf)
    chosen = scores.topk(min(count, length)).indices.int()
    if tokens > 1:
        chosen.masked_fill_(torch.arange(chosen.shape[1]) >= limits, -1)
    return functional.pad(chosen, (0, count - chosen.shape[1]), value=-1)


def attend_to_rows(
    query: Tensor, query_rope: Tensor, kv: Tensor, key_rope: Tensor, scale: float
) -> Tensor:
    """Attend from one token's heads to the selected rows.

    query is [N1, L], query_rope [N1, R], kv [n, L], key_rope [n, R]; returns [N1, L].
    """
    scores = torch.addmm(query_rope @ key_rope.t(), query, kv.t())
    return torch.softmax(scores.float() * scale, -1).to(kv.dtype) @ kv


def attend_exactly(
    query: Tensor, query_rope: Tensor, kv: Tensor, key_rope: Tensor, scale: float
) -> Tensor:
    """Attend as attend_to_rows does, with scores and weights in fp32.

    Where latents are of order 1, rounded weights put 2 % of the outputs beyond the tolerance.
    """
    out = attend_to_rows(query.float(), query_rope.float(), kv.float(), key_rope.float(), scale)
    return out.to(query.dtype)


@dataclass(frozen=True)
class Baseline:
    """The ops in PyTorch, eager or with each body through torch.compile."""

    add: Callable[[Tensor, Tensor], Tensor] = torch.add
    project: Callable[[FusedArguments], tuple[Tensor, ...]] = project
    select_in_sequence: Callable[[Tensor, Tensor, Tensor, int], Tensor] = select_in_sequence
    attend_to_rows: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = attend_to_rows
    attend_exactly: Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor] = attend_exactly

    @classmethod
    def with_bf16_scores(cls) -> Baseline:
        """Return one that leaves scores in bf16: faster, but fails the accuracy rule."""
        return cls(select_in_sequence=select_in_tensor_dtype, attend_exactly=attend_to_rows)

    @classmethod
    def in_fp32(cls) -> Baseline:
        """Return one whose products are in fp32: faster where the CPU has none of bf16."""
        return cls(project=project_in_fp32, attend_to_rows=attend_exactly)

    @classmethod
    def compiled(cls) -> Baseline:
        """Return the baseline whose bodies run through torch.compile with dynamic shapes."""
        # One body is compiled for every dtype and kind of strides that the cases have.
        torch._dynamo.config.recompile_limit = 64
        compiler: Callable[[Any], Any] = torch.compile(dynamic=True)
        bodies = (torch.add, project, select_in_sequence, attend_to_rows, attend_exactly)
        return cls(*map(compiler, bodies))

    def lightning_indexer(
        self,
        query: Tensor,
        key: Tensor,
        weights: Tensor,
        lengths: Tensor,
        block_table: Tensor,
        count: int = TOP_K,
    ) -> Tensor:
        """Compute npu_lightning_indexer_pto in mode 3: BSND queries, paged keys, one key head.

        query is [B, S1, N1, D], key [blocks, block_size, 1, D], weights [B, S1, N1], lengths [B],
        block_table [B, M]. Returns [B, S1, 1, count] int32.
        """
        block_size, size = key.shape[1], key.shape[-1]
        chosen = []
        for b, length in enumerate(lengths.tolist()):
            blocks = block_table[b, : -(-length // block_size)]
            paged = key.index_select(0, blocks).view(-1, size)[:length]
            chosen.append(self.select_in_sequence(query[b], paged, weights[b], count))
        return torch.stack(chosen).unsqueeze(2)

    def sparse_flash_attention(
        self,
        query: Tensor,
        query_rope: Tensor,
        kv_cache: Tensor,
        kr_cache: Tensor,
        sparse_indices: Tensor,
        block_table: Tensor,
        scale: float,
        *,
        exactly: bool = False,
    ) -> Tensor:
        """Attend from query [B, S1, N1, L] to sparse_indices [B, S1, 1, K] (-1: none)."""
        attend = self.attend_exactly if exactly else self.attend_to_rows
        block_size = kv_cache.shape[1]
        kv_rows = kv_cache.view(-1, kv_cache.shape[-1])
        kr_rows = kr_cache.view(-1, kr_cache.shape[-1])
        out = torch.zeros_like(query)
        for b in range(query.shape[0]):
            for s in range(query.shape[1]):
                positions = sparse_indices[b, s, 0]
                positions = positions[positions >= 0]
                if positions.numel() == 0:
                    continue
                blocks = block_table[b].index_select(0, positions // block_size)
                slots = blocks * block_size + positions % block_size
                out[b, s] = attend(
                    query[b, s],
                    query_rope[b, s],
                    kv_rows.index_select(0, slots),
                    kr_rows.index_select(0, slots),
                    scale,
                )
        return out

    def sparse_attention(self, arguments: FusedArguments) -> Tensor:
        """Compute npu_sparse_attention_pto; writes the three caches. Returns [B, S1, N1, L]."""
        a = arguments
        batch, tokens, hidden = a.x.shape
        query, query_rope, *rows, index_query, index_weights = self.project(
            a._replace(
                x=a.x.view(-1, hidden),
                sin=a.sin.view(batch * tokens, -1),
                cos=a.cos.view(batch * tokens, -1),
            )
        )
        slots = a.cache_index.flatten().long()
        for cache, new in zip((a.kv_cache, a.kr_cache, a.index_k_cache), rows, strict=True):
            cache.view(-1, cache.shape[-1]).index_copy_(0, slots, new)
        indices = self.lightning_indexer(
            index_query.view(batch, tokens, *index_query.shape[1:]),
            a.index_k_cache,
            index_weights.view(batch, tokens, -1),
            a.act_seqs,
            a.block_table,
        )
        return self.sparse_flash_attention(
            query.reshape(batch, tokens, *query.shape[1:]),
            query_rope.view(batch, tokens, *query_rope.shape[1:]),
            a.kv_cache,
            a.kr_cache,
            indices,
            a.block_table,
            (a.kv_cache.shape[-1] + a.kr_cache.shape[-1]) ** -0.5,
        )
