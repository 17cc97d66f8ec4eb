"""How torchair expresses the ops as GE nodes; imported only once torchair is.

npu_sparse_attention_pto is the op that a custom opp package registers as SparseAttentionPto:
dynamic inputs x0..x19 in schema order, one dynamic output. npu_sparse_flash_attention and
npu_mla_prolog are stock SparseFlashAttention and MlaPrologV3. npu_indexer_prolog has no counterpart
in GE's IR, hence no converter: torchair's GE mode refuses it by name; npugraph_ex and eager mode do
not need one.

Ops that fill caches arrive here functionalised: torchair copies each cache, hands the copy in, and
takes the copy, after this node, as the new cache. So only what the schema returns is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchair import ge
from torchair.ge import attr

if TYPE_CHECKING:
    from torchair.ge import Tensor

_ALL_TOKENS = 2**63 - 1
_MLA_ABSORBED = 2


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
    """npu_sparse_attention_pto as SparseAttentionPto."""
    inputs = [
        *(x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos, cache_index),
        *(kv_cache, kr_cache, block_table, act_seqs, w_idx_qb, w_idx_k, w_idx_proj),
        *(in_gamma_k, in_beta_k, index_k_cache),
    ]
    (out,) = ge.custom_op("SparseAttentionPto", inputs={"x": inputs}, outputs=[("y", 1)])
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
    """npu_mla_prolog as MlaPrologV3, without quantisation, asked for its query_norm."""
    query, query_rope, _, _, _, query_norm, _ = ge.custom_op(
        "MlaPrologV3",
        inputs={
            "token_x": x,
            "weight_dq": w_dq,
            "weight_uq_qr": w_uq_qr,
            "weight_uk": w_uk,
            "weight_dkv_kr": w_dkv_kr,
            "rmsnorm_gamma_cq": gamma_cq,
            "rmsnorm_gamma_ckv": gamma_ckv,
            "rope_sin": sin,
            "rope_cos": cos,
            "kv_cache": kv_cache,
            "kr_cache": kr_cache,
            "cache_index": ge.Cast(cache_index, dst_type=ge.DataType.DT_INT64),
            "dequant_scale_x": None,
            "dequant_scale_w_dq": None,
            "dequant_scale_w_uq_qr": None,
            "dequant_scale_w_dkv_kr": None,
            "quant_scale_ckv": None,
            "quant_scale_ckr": None,
            "smooth_scales_cq": None,
            "actual_seq_len": None,
            "k_nope_clip_alpha": None,
        },
        attrs={
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
        },
        outputs=[
            "query",
            "query_rope",
            "kv_cache",
            "kr_cache",
            "dequant_scale_q_nope",
            "query_norm",
            "dequant_scale_q_norm",
        ],
    )
    return query, query_rope, query_norm


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
    layout = "BSND" if query.rank == 4 else "TND"
    out, softmax_max, _ = ge.custom_op(
        "SparseFlashAttention",
        inputs={
            "query": query,
            "key": kv_cache,
            "value": kv_cache,
            "sparse_indices": _int32(sparse_indices),
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


def _int32(tensor: Tensor | None) -> Tensor | None:
    """The only integers that SparseFlashAttention takes; GE drops a cast that changes nothing."""
    return None if tensor is None else ge.Cast(tensor, dst_type=ge.DataType.DT_INT32)
