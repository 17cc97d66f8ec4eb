"""How torchair expresses the ops as GE nodes; imported only once torchair is.

| op | node |
|---|---|
| npu_sparse_attention_pto | SparseAttentionPto, which an opp package registers; else its pieces |
| npu_mla_prolog | MlaPrologV3 of CANN since 8.5.0.alpha003, for its sizes; else its steps |
| npu_indexer_prolog | its steps |
| npu_sparse_flash_attention | SparseFlashAttention |
| npu_sparse_flash_attention_grad | SparseFlashAttentionGrad |

SparseAttentionPto has dynamic inputs x0..x19 in schema order, weights in fractal NZ order, and one
dynamic output. Steps are common operators.

Ops that fill caches arrive here functionalised: torchair copies each cache and hands the copy in.
torchair looks only at the last node made here. If that node has the copy as an input and an output
of the same name, the output is the new cache, and torchair leaves the copying out. Otherwise the
copy itself is the new cache once the last node has run. The order in which nodes are made is no
dependency, and GE prunes nodes that nothing needs. So the last node must depend on every node that
writes, and should itself write as much as it can. Only what the schema returns is returned.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments, check_limits, supports
from custom_pypto.core.ge_operators import is_registered
from custom_pypto_blocks import ge_steps as steps
from custom_pypto_lightning_indexer.converter import convert_lightning_indexer
from torchair import ge
from torchair.ge import attr

from . import ATTENTION, ATTENTION_GRAD, FUSED, INDEXER_PROLOG, MLA_PROLOG
from . import ge_steps as own_steps
from .ops import ALL_TOKENS, LAYER_NORM_EPSILON, RMS_EPSILON, TOP_K
from .weight_order import NZ_WEIGHTS

if TYPE_CHECKING:
    from torchair.ge import Tensor

_MLA_ABSORBED = 2

# Inputs of MlaPrologV3 in CANN's order, with the argument that each is; None: without quantisation
# there is none. Before CANN 8.5.0.alpha003 k_nope_clip_alpha was a number, and query_norm reserved.
_MLA_PROLOG_INPUTS = {
    "token_x": "x",
    "weight_dq": "w_dq",
    "weight_uq_qr": "w_uq_qr",
    "weight_uk": "w_uk",
    "weight_dkv_kr": "w_dkv_kr",
    "rmsnorm_gamma_cq": "gamma_cq",
    "rmsnorm_gamma_ckv": "gamma_ckv",
    "rope_sin": "sin",
    "rope_cos": "cos",
    "kv_cache": "kv_cache",
    "kr_cache": "kr_cache",
    "cache_index": "cache_index",
    **dict.fromkeys(
        (
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
    ),
}
_MLA_PROLOG_ATTRIBUTES = {
    "rmsnorm_epsilon_cq": attr.Float(RMS_EPSILON),
    "rmsnorm_epsilon_ckv": attr.Float(RMS_EPSILON),
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
    """The results of the MLA prolog, and the caches after it."""

    query: Tensor
    query_rope: Tensor
    q_norm: Tensor
    kv_cache: Tensor
    kr_cache: Tensor


class _Indexer(NamedTuple):
    """The results of the indexer prolog, and the cache after it."""

    query: Tensor
    weights: Tensor
    index_k_cache: Tensor


@steps.converter_of(FUSED)
def convert_sparse_attention(a: SimpleNamespace) -> Tensor:
    """npu_sparse_attention_pto as SparseAttentionPto where that can be, else its pieces."""
    if is_registered("SparseAttentionPto") and supports(
        contract(FUSED), "aclnnSparseAttentionPto", vars(a)
    ):
        return _fused(a)
    check_limits(contract(FUSED), "aclnnSparseFlashAttention", vars(a))
    if not is_registered("LightningIndexerPto"):
        check_limits(contract(FUSED), "aclnnLightningIndexer", vars(a))
    prolog = _mla_prolog(a)
    index = _indexer_prolog(a, prolog.q_norm)
    selected = convert_lightning_indexer(
        index.query,
        index.index_k_cache,
        index.weights,
        actual_seq_lengths_key=a.act_seqs,
        block_table=a.block_table,
    )
    selected.set_meta(a.x.meta.new_empty((*a.x.symsize[:-1], 1, TOP_K), dtype=torch.int32))
    queries, caches = (prolog.query, prolog.query_rope), (prolog.kv_cache, prolog.kr_cache)
    scale = (steps.size(a.kv_cache, -1) + steps.size(a.kr_cache, -1)) ** -0.5
    attended = (*queries, *caches, selected, a.block_table, a.act_seqs)
    call = bind_arguments(contract(ATTENTION), attended, {"scale": scale})
    out, _ = _sparse_flash_attention(SimpleNamespace(**call))
    return out


@steps.converter_of(MLA_PROLOG)
def convert_mla_prolog(a: SimpleNamespace) -> tuple[Tensor, Tensor, Tensor]:
    """npu_mla_prolog as MlaPrologV3 where this is known and takes the sizes, else its steps."""
    prolog = _mla_prolog(a)
    return prolog.query, prolog.query_rope, prolog.q_norm


@steps.converter_of(INDEXER_PROLOG)
def convert_indexer_prolog(a: SimpleNamespace) -> tuple[Tensor, Tensor]:
    """npu_indexer_prolog as its steps; GE has no operator that takes all of them."""
    index = _indexer_prolog(a, a.q_norm)
    return index.query, index.weights


@steps.converter_of(ATTENTION)
def convert_sparse_flash_attention(a: SimpleNamespace) -> tuple[Tensor, Tensor]:
    """npu_sparse_flash_attention as SparseFlashAttention; no log-sum-exp."""
    if a.return_softmax_lse:
        raise RuntimeError(
            f"{ATTENTION}: argument 'return_softmax_lse' must be False on an NPU in a graph: CANN"
            " gives the log-sum-exp in eager mode only"
        )
    check_limits(contract(ATTENTION), "aclnnSparseFlashAttention", vars(a))
    if a.actual_seq_lengths_query is not None and a.query.rank == 4:
        # The op takes a length above S1 for S1; SparseFlashAttention takes none.
        longest = steps.size(a.query, 1)
        a.actual_seq_lengths_query = steps.clamp_max(a.actual_seq_lengths_query, longest)
    # SparseFlashAttention wants every -1 last; the op does not.
    a.sparse_indices = own_steps.sort_descending(a.sparse_indices)
    return _sparse_flash_attention(a)


@steps.converter_of(ATTENTION_GRAD)
def convert_sparse_flash_attention_grad(a: SimpleNamespace) -> tuple[Tensor, ...]:
    """npu_sparse_flash_attention_grad as SparseFlashAttentionGrad."""
    check_limits(contract(ATTENTION_GRAD), "aclnnSparseFlashAttentionGrad", vars(a))
    gradients = ge.custom_op(
        "SparseFlashAttentionGrad",
        inputs={
            **{name: getattr(a, name) for name in ("query", "key", "value")},
            "sparse_indices": own_steps.sort_descending(a.sparse_indices),
            **{name: getattr(a, name) for name in ("d_out", "out", "softmax_max", "softmax_sum")},
            "actual_seq_lengths_query": steps.as_int32(a.actual_seq_qlen),
            "actual_seq_lengths_kv": steps.as_int32(a.actual_seq_kvlen),
            "query_rope": a.query_rope,
            "key_rope": a.key_rope,
        },
        attrs={
            "scale_value": attr.Float(a.scale_value),
            "sparse_block_size": attr.Int(a.sparse_block_size),
            "layout": attr.Str(a.layout),
            "sparse_mode": attr.Int(a.sparse_mode),
            "pre_tokens": attr.Int(a.pre_tokens),
            "next_tokens": attr.Int(a.next_tokens),
            "deterministic": attr.Bool(True),
        },
        outputs=["d_query", "d_key", "d_value", "d_query_rope", "d_key_rope"],
    )
    return tuple(gradients)


def _fused(a: SimpleNamespace) -> Tensor:
    """The node of an opp package, which has the op's arguments in their order."""
    given = {
        name: steps.as_int32(getattr(a, name))
        for name in ("cache_index", "block_table", "act_seqs")
    }
    for name in NZ_WEIGHTS:
        given[name] = own_steps.nz_weight(getattr(a, name))
    inputs = list((vars(a) | given).values())
    (out,) = ge.custom_op("SparseAttentionPto", inputs={"x": inputs}, outputs=[("y", 1)])
    return out


def _sparse_flash_attention(a: SimpleNamespace) -> tuple[Tensor, Tensor]:
    out, softmax_max, _ = ge.custom_op(
        "SparseFlashAttention",
        inputs={
            "query": a.query,
            "key": a.kv_cache,
            "value": a.kv_cache,
            "sparse_indices": a.sparse_indices,
            "block_table": steps.as_int32(a.block_table),
            "actual_seq_lengths_query": steps.as_int32(a.actual_seq_lengths_query),
            "actual_seq_lengths_kv": steps.as_int32(a.actual_seq_lengths_kv),
            "query_rope": a.query_rope,
            "key_rope": a.kr_cache,
        },
        attrs={
            "scale_value": attr.Float(a.scale),
            "sparse_block_size": attr.Int(1),
            "layout_query": attr.Str("BSND" if a.query.rank == 4 else "TND"),
            "layout_kv": attr.Str(a.layout_kv),
            "sparse_mode": attr.Int(a.sparse_mode),
            "pre_tokens": attr.Int(ALL_TOKENS),
            "next_tokens": attr.Int(ALL_TOKENS),
            "attention_mode": attr.Int(_MLA_ABSORBED),
            "return_softmax_lse": attr.Bool(False),
        },
        outputs=["attention_out", "softmax_max", "softmax_sum"],
    )
    return out, softmax_max


def _mla_prolog(a: SimpleNamespace) -> _Mla:
    is_plain = all(map(own_steps.is_plain_matrix, (a.w_dq, a.w_uq_qr, a.w_dkv_kr)))
    is_stock = is_plain and supports(contract(MLA_PROLOG), "aclnnMlaPrologV3WeightNz", vars(a))
    is_known = is_stock and steps.is_registered_with(
        "MlaPrologV3",
        inputs=_MLA_PROLOG_INPUTS,
        attributes=_MLA_PROLOG_ATTRIBUTES,
        outputs=_MLA_PROLOG_OUTPUTS,
    )
    prolog = _stock_mla_prolog(a) if is_known else _compose_mla_prolog(a)
    # Further nodes read the shapes.
    leading, (heads, _, latent) = a.x.symsize[:-1], a.w_uk.symsize
    prolog.query.set_meta(a.x.meta.new_empty((*leading, heads, latent)))
    prolog.query_rope.set_meta(a.x.meta.new_empty((*leading, heads, a.sin.symsize[-1])))
    prolog.q_norm.set_meta(a.x.meta.new_empty((*leading, a.gamma_cq.symsize[0])))
    return prolog


def _stock_mla_prolog(a: SimpleNamespace) -> _Mla:
    """MlaPrologV3, without quantisation, with its query_norm."""
    given = {**vars(a), "cache_index": steps.cast(a.cache_index, ge.DataType.DT_INT64)}
    query, query_rope, kv_cache, kr_cache, _, q_norm, _ = ge.custom_op(
        "MlaPrologV3",
        inputs={
            name: argument and given[argument] for name, argument in _MLA_PROLOG_INPUTS.items()
        },
        attrs=_MLA_PROLOG_ATTRIBUTES,
        outputs=_MLA_PROLOG_OUTPUTS,
    )
    return _Mla(query, query_rope, q_norm, kv_cache, kr_cache)


def _compose_mla_prolog(a: SimpleNamespace) -> _Mla:
    heads, nope, latent = (steps.size(a.w_uk, dim) for dim in range(3))
    rotated = steps.size(a.sin, -1)
    tokens, dtype = steps.rows(a.x), a.x.dtype

    down = steps.matmul(tokens, own_steps.plain_weight(a.w_dq))
    q_norm = steps.cast(own_steps.rms_norm(down, a.gamma_cq), dtype)
    both = steps.matmul(q_norm, own_steps.plain_weight(a.w_uq_qr))
    both = steps.reshape(both, -1, heads, nope + rotated)
    straight = steps.transpose(steps.columns(both, 3, 0, nope), 1, 0, 2)
    query = steps.transpose(steps.batch_matmul(straight, a.w_uk), 1, 0, 2)
    query_rope = steps.columns(both, 3, nope, nope + rotated)
    query_rope = steps.rope(query_rope, rotated, a.sin, a.cos, dtype)

    row = steps.matmul(tokens, own_steps.plain_weight(a.w_dkv_kr))
    compressed = own_steps.rms_norm(steps.columns(row, 2, 0, latent), a.gamma_ckv)
    key_rope = steps.reshape(steps.columns(row, 2, latent, latent + rotated), -1, 1, rotated)
    key_rope = steps.rope(key_rope, rotated, a.sin, a.cos, dtype)
    query = own_steps.like_tokens(a.x, query, heads, latent)
    query_rope = own_steps.like_tokens(a.x, query_rope, heads, rotated)
    q_norm = own_steps.like_tokens(a.x, q_norm, steps.size(a.gamma_cq, 0))
    # The larger cache last: of the two, it is the one that torchair need not copy.
    kr_cache = steps.scatter(a.kr_cache, a.cache_index, key_rope)
    latents = steps.cast(compressed, dtype)
    kv_cache = steps.scatter(a.kv_cache, a.cache_index, latents, after=kr_cache)
    return _Mla(query, query_rope, q_norm, kv_cache, kr_cache)


def _indexer_prolog(a: SimpleNamespace, q_norm: Tensor) -> _Indexer:
    head_size, rotated = steps.size(a.in_gamma_k, 0), steps.size(a.sin, -1)
    heads = own_steps.columns_of(a.w_idx_proj)
    tokens, dtype = steps.rows(a.x), a.x.dtype

    query = steps.matmul(steps.rows(q_norm), own_steps.plain_weight(a.w_idx_qb))
    query = steps.reshape(query, -1, heads, head_size)
    query = steps.rope_first(query, head_size, rotated, a.sin, a.cos, dtype)
    # The key's products are normed before they are rounded.
    key = steps.matmul(
        steps.as_float32(tokens), steps.as_float32(own_steps.plain_weight(a.w_idx_k))
    )
    key = steps.cast(steps.layer_norm(key, a.in_gamma_k, a.in_beta_k, LAYER_NORM_EPSILON), dtype)
    key = steps.reshape(key, -1, 1, head_size)
    key = steps.rope_first(key, head_size, rotated, a.sin, a.cos, dtype)
    weights = steps.matmul(tokens, own_steps.plain_weight(a.w_idx_proj))
    query = own_steps.like_tokens(a.x, query, heads, head_size)
    weights = own_steps.like_tokens(a.x, weights, heads)
    # Last: torchair need not copy the cache.
    index = _Indexer(query, weights, steps.scatter(a.index_k_cache, a.cache_index, key))
    leading = a.x.symsize[:-1]
    index.index_k_cache.set_meta(a.index_k_cache.meta)
    index.query.set_meta(a.x.meta.new_empty((*leading, heads, head_size)))
    index.weights.set_meta(a.x.meta.new_empty((*leading, heads)))
    return index
