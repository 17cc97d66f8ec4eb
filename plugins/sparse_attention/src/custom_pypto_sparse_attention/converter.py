"""How torchair expresses the ops as GE nodes; imported only once torchair is.

npu_sparse_attention_pto is the op that a custom opp package registers as SparseAttentionPto:
dynamic inputs x0..x19 in schema order, weights in fractal NZ order, one dynamic output. Where none
does, or a weight cannot have that order, it is made of the ops that it is made of in eager mode.
npu_sparse_flash_attention is CANN's SparseFlashAttention, and npu_mla_prolog its MlaPrologV3 as it
is since CANN 8.5.0.alpha003, for the sizes that this takes. All else is made of common operators.

Ops that fill caches arrive here functionalised: torchair copies each cache and hands the copy in.
Of the nodes made here it looks at the last one only. Where that has the copy as an input and an
output of the same name, the output is the new cache, and torchair leaves the copying out. Else the
new cache is the copy itself once the last node has run. The order in which nodes are made is no
dependency, and GE prunes what nothing needs: so the last node must need every node that writes, and
should itself write as much as it can. Only what the schema returns is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from custom_pypto.core.ge_operators import is_registered, is_registered_with
from custom_pypto_lightning_indexer.converter import at_most, convert_lightning_indexer
from torchair import ge
from torchair.ge import attr

from . import ge_steps as steps
from . import limits

if TYPE_CHECKING:
    from torchair.ge import Tensor

_ALL_TOKENS = 2**63 - 1
_MLA_ABSORBED = 2
_TOP_K = 2048

# MlaPrologV3 as it is since CANN 8.5.0.alpha003. Before, k_nope_clip_alpha was a number, and
# query_norm reserved.
_MLA_PROLOG_TENSORS = (
    "token_x",
    "weight_dq",
    "weight_uq_qr",
    "weight_uk",
    "weight_dkv_kr",
    "rmsnorm_gamma_cq",
    "rmsnorm_gamma_ckv",
    "rope_sin",
    "rope_cos",
    "kv_cache",
    "kr_cache",
    "cache_index",
)
_MLA_PROLOG_UNUSED = (
    "dequant_scale_x",
    "dequant_scale_w_dq",
    "dequant_scale_w_uq_qr",
    "dequant_scale_w_dkv_kr",
    "quant_scale_ckv",
    "quant_scale_ckr",
    "smooth_scales_cq",
    "actual_seq_len",
    "k_nope_clip_alpha",
)
_MLA_PROLOG_ATTRIBUTES = {
    "rmsnorm_epsilon_cq": attr.Float(1e-5),
    "rmsnorm_epsilon_ckv": attr.Float(1e-5),
    "cache_mode": attr.Str("PA_BSND"),
    "query_norm_flag": attr.Bool(True),
    "weight_quant_mode": attr.Int(0),
    "kv_cache_quant_mode": attr.Int(0),
    "query_quant_mode": attr.Int(0),
    "ckvkr_repo_mode": attr.Int(0),
    "quant_scale_repo_mode": attr.Int(0),
    "tile_size": attr.Int(128),
    "qc_qr_scale": attr.Float(1.0),
    "kc_scale": attr.Float(1.0),
}
_MLA_PROLOG_OUTPUTS = [
    "query",
    "query_rope",
    "kv_cache",
    "kr_cache",
    "dequant_scale_q_nope",
    "query_norm",
    "dequant_scale_q_norm",
]


class _Mla(NamedTuple):
    """What the MLA prolog returns, and the caches after it."""

    query: Tensor
    query_rope: Tensor
    q_norm: Tensor
    kv_cache: Tensor
    kr_cache: Tensor


class _Indexer(NamedTuple):
    """What the indexer prolog returns, and the cache after it."""

    query: Tensor
    weights: Tensor
    index_k_cache: Tensor


def convert_sparse_attention(
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
    block_table: Tensor,
    act_seqs: Tensor,
    w_idx_qb: Tensor,
    w_idx_k: Tensor,
    w_idx_proj: Tensor,
    in_gamma_k: Tensor,
    in_beta_k: Tensor,
    index_k_cache: Tensor,
    meta_outputs: Any = None,
) -> Tensor:
    """npu_sparse_attention_pto as SparseAttentionPto where that can be, else its pieces."""
    mla = (x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos, cache_index)
    weights = (w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k)
    nz = (w_dq, w_uq_qr, w_dkv_kr, w_idx_qb, w_idx_k, w_idx_proj)
    if is_registered("SparseAttentionPto") and all(map(steps.has_nz_order, nz)):
        w_dq, w_uq_qr, w_dkv_kr, *index_weights = map(steps.nz_weight, nz)
        mla_weights = (w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv)
        caches_and_lengths = (kv_cache, kr_cache, _int32(block_table), _int32(act_seqs))
        inputs = [x, *mla_weights, sin, cos, _int32(cache_index), *caches_and_lengths]
        inputs += [*index_weights, in_gamma_k, in_beta_k, index_k_cache]
        (out,) = ge.custom_op("SparseAttentionPto", inputs={"x": inputs}, outputs=[("y", 1)])
        return out
    heads = steps.size(w_uk, 0)
    op = "npu_sparse_attention_pto"
    limits.check_attention(op, "w_uk", heads, x.meta.dtype, kv_cache, kr_cache)
    if not is_registered("LightningIndexerPto"):
        index_heads = steps.columns_of(w_idx_proj)
        limits.check_indexer(op, "w_idx_proj", index_heads, index_k_cache)
    prolog = _mla_prolog(*mla, kv_cache, kr_cache)
    index = _indexer_prolog(x, prolog.q_norm, *weights, sin, cos, cache_index, index_k_cache)
    selected = convert_lightning_indexer(
        index.query,
        index.index_k_cache,
        index.weights,
        actual_seq_lengths_key=act_seqs,
        block_table=block_table,
    )
    selected.set_meta(x.meta.new_empty((*x.symsize[:-1], 1, _TOP_K), dtype=torch.int32))
    out, _ = _sparse_flash_attention(
        prolog.query,
        prolog.query_rope,
        prolog.kv_cache,
        prolog.kr_cache,
        selected,
        block_table,
        act_seqs,
        layout="BSND",
        scale=(steps.size(kv_cache, -1) + steps.size(kr_cache, -1)) ** -0.5,
    )
    return out


def convert_mla_prolog(
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
    meta_outputs: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """npu_mla_prolog as MlaPrologV3 where this is known and takes the sizes, else its steps."""
    mla = (x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos, cache_index)
    prolog = _mla_prolog(*mla, kv_cache, kr_cache)
    return prolog.query, prolog.query_rope, prolog.q_norm


def convert_indexer_prolog(
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
    meta_outputs: Any = None,
) -> tuple[Tensor, Tensor]:
    """npu_indexer_prolog as its steps; GE has no operator that takes all of them."""
    weights = (w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k)
    index = _indexer_prolog(x, q_norm, *weights, sin, cos, cache_index, index_k_cache)
    return index.query, index.weights


def convert_sparse_flash_attention(
    query: Tensor,
    query_rope: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor,
    actual_seq_lengths_kv: Tensor,
    *,
    scale: float,
    actual_seq_lengths_query: Tensor | None = None,
    sparse_mode: int = 3,
    return_softmax_lse: bool = False,
    meta_outputs: Any = None,
) -> tuple[Tensor, Tensor]:
    """npu_sparse_flash_attention as SparseFlashAttention over a paged cache; no log-sum-exp."""
    if return_softmax_lse:
        raise RuntimeError(
            "npu_sparse_flash_attention: argument 'return_softmax_lse' must be False in a GE graph:"
            " SparseFlashAttention does not return it for a paged cache"
        )
    heads, dtype = steps.size(query, -2), query.meta.dtype
    op = "npu_sparse_flash_attention"
    limits.check_attention(op, "query", heads, dtype, kv_cache, kr_cache)
    if actual_seq_lengths_query is not None and query.rank == 4:
        # A length above S1 means S1, but is not for SparseFlashAttention.
        actual_seq_lengths_query = at_most(actual_seq_lengths_query, steps.size(query, 1))
    return _sparse_flash_attention(
        query,
        query_rope,
        kv_cache,
        kr_cache,
        # SparseFlashAttention wants every -1 last; the op does not.
        steps.sorted_down(steps.cast(sparse_indices, ge.DataType.DT_INT32)),
        block_table,
        actual_seq_lengths_kv,
        layout="BSND" if query.rank == 4 else "TND",
        scale=scale,
        actual_seq_lengths_query=actual_seq_lengths_query,
        sparse_mode=sparse_mode,
    )


def _sparse_flash_attention(
    query: Tensor,
    query_rope: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor,
    actual_seq_lengths_kv: Tensor,
    *,
    layout: str,
    scale: float,
    actual_seq_lengths_query: Tensor | None = None,
    sparse_mode: int = 3,
) -> tuple[Tensor, Tensor]:
    out, softmax_max, _ = ge.custom_op(
        "SparseFlashAttention",
        inputs={
            "query": query,
            "key": kv_cache,
            "value": kv_cache,
            "sparse_indices": sparse_indices,
            "block_table": _int32(block_table),
            "actual_seq_lengths_query": _int32(actual_seq_lengths_query),
            "actual_seq_lengths_kv": _int32(actual_seq_lengths_kv),
            "query_rope": query_rope,
            "key_rope": kr_cache,
        },
        attrs={
            "scale_value": attr.Float(scale),
            "sparse_block_size": attr.Int(1),
            "layout_query": attr.Str(layout),
            "layout_kv": attr.Str("PA_BSND"),
            "sparse_mode": attr.Int(sparse_mode),
            "pre_tokens": attr.Int(_ALL_TOKENS),
            "next_tokens": attr.Int(_ALL_TOKENS),
            "attention_mode": attr.Int(_MLA_ABSORBED),
            "return_softmax_lse": attr.Bool(False),
        },
        outputs=["attention_out", "softmax_max", "softmax_sum"],
    )
    return out, softmax_max


def _mla_prolog(
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
) -> _Mla:
    weights = (w_dq, w_uq_qr, w_uk, w_dkv_kr)
    tensors = (x, *weights, gamma_cq, gamma_ckv, sin, cos, cache_index, kv_cache, kr_cache)
    fits = limits.fits_mla_prolog(x, *weights, gamma_cq, gamma_ckv, sin, cos, kv_cache)
    if fits and _is_known_mla_prolog():
        return _stock_mla_prolog(*tensors)
    return _composed_mla_prolog(*tensors)


def _is_known_mla_prolog() -> bool:
    """Whether the registered MlaPrologV3 is the one that `_stock_mla_prolog` makes a node of."""
    return is_registered_with(
        "MlaPrologV3",
        inputs=(*_MLA_PROLOG_TENSORS, *_MLA_PROLOG_UNUSED),
        attributes=_MLA_PROLOG_ATTRIBUTES,
        outputs=_MLA_PROLOG_OUTPUTS,
    )


def _stock_mla_prolog(
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
) -> _Mla:
    """MlaPrologV3, without quantisation, asked for its query_norm."""
    tensors = (x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos, kv_cache, kr_cache)
    slots = ge.Cast(cache_index, dst_type=ge.DataType.DT_INT64)
    given = dict(zip(_MLA_PROLOG_TENSORS, (*tensors, slots), strict=True))
    query, query_rope, kv_cache, kr_cache, _, q_norm, _ = ge.custom_op(
        "MlaPrologV3",
        inputs={**given, **dict.fromkeys(_MLA_PROLOG_UNUSED)},
        attrs=_MLA_PROLOG_ATTRIBUTES,
        outputs=_MLA_PROLOG_OUTPUTS,
    )
    prolog = _Mla(query, query_rope, q_norm, kv_cache, kr_cache)
    heads, _, latent = (steps.size(w_uk, dim) for dim in range(3))
    return _with_meta(prolog, x, heads, latent, steps.size(sin, -1), steps.size(gamma_cq, 0))


def _composed_mla_prolog(
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
) -> _Mla:
    heads, nope, latent = (steps.size(w_uk, dim) for dim in range(3))
    turned = steps.size(sin, -1)
    tokens = steps.rows(x)

    down = steps.product(tokens, steps.plain_weight(w_dq))
    q_norm = steps.cast(steps.rms_norm(down, gamma_cq), x.dtype)
    both = steps.reshaped(
        steps.product(q_norm, steps.plain_weight(w_uq_qr)), -1, heads, nope + turned
    )
    straight = steps.transposed(steps.columns(both, 3, 0, nope), 1, 0, 2)
    query = steps.transposed(steps.batched_product(straight, w_uk), 1, 0, 2)
    query_rope = steps.columns(both, 3, nope, nope + turned)
    query_rope = steps.rope(query_rope, turned, sin, cos, x.dtype)

    row = steps.product(tokens, steps.plain_weight(w_dkv_kr))
    compressed = steps.rms_norm(steps.columns(row, 2, 0, latent), gamma_ckv)
    key_rope = steps.reshaped(steps.columns(row, 2, latent, latent + turned), -1, 1, turned)
    key_rope = steps.rope(key_rope, turned, sin, cos, x.dtype)
    query = steps.like_tokens(x, query, heads, latent)
    query_rope = steps.like_tokens(x, query_rope, heads, turned)
    q_norm = steps.like_tokens(x, q_norm, steps.size(gamma_cq, 0))
    # The larger cache last: of the two, it is the one that torchair need not copy.
    kr_cache = steps.scatter(kr_cache, cache_index, key_rope)
    latents = steps.cast(compressed, x.dtype)
    kv_cache = steps.scatter(kv_cache, cache_index, latents, after=kr_cache)
    prolog = _Mla(query, query_rope, q_norm, kv_cache, kr_cache)
    return _with_meta(prolog, x, heads, latent, turned, steps.size(gamma_cq, 0))


def _with_meta(
    prolog: _Mla, x: Tensor, heads: int, latent: int, turned: int, query_rank: int
) -> _Mla:
    """Say the shapes of the tensors, which further nodes are told."""
    leading = x.symsize[:-1]
    prolog.query.set_meta(x.meta.new_empty((*leading, heads, latent)))
    prolog.query_rope.set_meta(x.meta.new_empty((*leading, heads, turned)))
    prolog.q_norm.set_meta(x.meta.new_empty((*leading, query_rank)))
    return prolog


def _indexer_prolog(
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
) -> _Indexer:
    head_size, turned = steps.size(in_gamma_k, 0), steps.size(sin, -1)
    heads = steps.columns_of(w_idx_proj)
    tokens = steps.rows(x)

    query = steps.product(steps.rows(q_norm), steps.plain_weight(w_idx_qb))
    query = steps.reshaped(query, -1, heads, head_size)
    query = steps.rope_first(query, head_size, turned, sin, cos, x.dtype)
    # The key's products are normed before they are rounded.
    key = steps.product(steps.wide(tokens), steps.wide(steps.plain_weight(w_idx_k)))
    key = steps.cast(steps.layer_norm(key, in_gamma_k, in_beta_k), x.dtype)
    key = steps.reshaped(key, -1, 1, head_size)
    key = steps.rope_first(key, head_size, turned, sin, cos, x.dtype)
    weights = steps.product(tokens, steps.plain_weight(w_idx_proj))
    query = steps.like_tokens(x, query, heads, head_size)
    weights = steps.like_tokens(x, weights, heads)
    # Last: torchair need not copy the cache.
    written = steps.scatter(index_k_cache, cache_index, key)
    index = _Indexer(query, weights, written)
    leading = x.symsize[:-1]
    index.index_k_cache.set_meta(index_k_cache.meta)
    index.query.set_meta(x.meta.new_empty((*leading, heads, head_size)))
    index.weights.set_meta(x.meta.new_empty((*leading, heads)))
    return index


def _int32(tensor: Tensor | None) -> Tensor | None:
    """The only integers that CANN's types take; GE drops a cast that changes nothing."""
    return None if tensor is None else ge.Cast(tensor, dst_type=ge.DataType.DT_INT32)
