"""An adapter takes every argument that the published op takes, in the same order.

The signatures are those that the engines' sources register, without types: op-plugin at 517f2e7d
(op_plugin_functions.yaml), vllm-ascend at 182b75ea and v0.9.1 (csrc/torch_binding.cpp),
sgl-kernel-npu at f425bdf1 (csrc/pytorch_extensions.cpp).
"""

import inspect
from operator import attrgetter
from typing import Any

import custom_pypto_serving
import pytest
import torch
from calls import CALLS
from torch.fx.operator_schemas import get_signature_for_torch_op

NO_WINDOW = 2**63 - 1
_LENGTHS = "actual_seq_lengths_query=None, actual_seq_lengths_key=None, block_table=None"
_LAYOUTS = "layout_query='BSND', layout_key='BSND', sparse_count=2048, sparse_mode=3"
_WINDOW = f"pre_tokens={NO_WINDOW}, next_tokens={NO_WINDOW}"
_INDEXER = f"query, key, weights, *, {_LENGTHS}, {_LAYOUTS}, {_WINDOW}, return_value=False"
# attention_mode is 0 in op-plugin, which documents 2 as the only value; vllm-ascend has 2.
_ATTENTION = (
    "query, key, value, sparse_indices, scale_value, *, block_table=None,"
    " actual_seq_lengths_query=None, actual_seq_lengths_kv=None, query_rope=None, key_rope=None,"
    f" sparse_block_size=1, layout_query='BSND', layout_kv='BSND', sparse_mode=3, {_WINDOW},"
    " attention_mode=2, return_softmax_lse=False"
)
_SCALES = "query, key, weights, query_dequant_scale, key_dequant_scale"
_SHARED_KV = (
    "q, *, ori_kv=None, cmp_kv=None, ori_sparse_indices=None, cmp_sparse_indices=None,"
    " ori_block_table=None, cmp_block_table=None, cu_seqlens_q=None, cu_seqlens_ori_kv=None,"
    " cu_seqlens_cmp_kv=None, seqused_q=None, seqused_kv=None, sinks=None, metadata=None,"
    " softmax_scale=0, cmp_ratio=0, ori_mask_mode=4, cmp_mask_mode=3, ori_win_left=128,"
    " ori_win_right=0, layout_q='BSND', layout_kv='PA_ND', return_softmax_lse=False"
)

SIGNATURES = {
    "torch_npu.npu_lightning_indexer": _INDEXER,
    "torch_npu.npu_sparse_flash_attention": f"{_ATTENTION}, sinks=None",
    "torch_npu.npu_quant_lightning_indexer": (
        f"{_SCALES}, query_quant_mode, key_quant_mode, *, {_LENGTHS}, {_LAYOUTS}, {_WINDOW},"
        " query_dtype=None, key_dtype=None"
    ),
    "torch_npu.npu_advance_step_flashattn": (
        "input_tokens, sampled_token_ids, input_positions, seq_lens, slot_mapping, block_tables,"
        " num_seqs, num_queries, block_size, *, spec_token=None, accepted_num=None"
    ),
    "torch.ops.custom.npu_sparse_flash_attention": (
        "query, key, value, sparse_indices, scale_value, sparse_block_size, *, block_table=None,"
        " actual_seq_lengths_query=None, actual_seq_lengths_kv=None, query_rope=None,"
        " key_rope=None, layout_query='BSND', layout_kv='BSND', sparse_mode=3"
    ),
    "torch.ops.sgl_kernel_npu.npu_sparse_flash_attention": _ATTENTION,
    "torch.ops._C_ascend.npu_lightning_indexer": _INDEXER,
    "torch.ops._C_ascend.npu_sparse_flash_attention": _ATTENTION,
    "torch.ops._C_ascend.npu_lightning_indexer_quant": (
        f"{_SCALES}, *, {_LENGTHS}, query_quant_mode=0, key_quant_mode=0, {_LAYOUTS}"
    ),
    "torch.ops._C_ascend.npu_sparse_attn_sharedkv": _SHARED_KV,
    "torch.ops.npu.sparse_attn_sharedkv": _SHARED_KV,
    "torch.ops._C_ascend.npu_hc_post": "x, residual, post, comb",
    "torch.ops._C_ascend.npu_vllm_quant_lightning_indexer": (
        f"{_SCALES}, query_quant_mode=0, key_quant_mode=0, {_LENGTHS}, metadata=None, {_LAYOUTS},"
        f" {_WINDOW}, cmp_ratio=1, return_value=False"
    ),
    # vllm-ascend has no defaults of these two; they are cann-recipes' and sgl-kernel-npu's.
    "torch.ops._C_ascend.npu_hc_pre": (
        "x, hc_fn, hc_scale, hc_base, hc_mult=4, hc_sinkhorn_iters=20, norm_eps=1e-6, hc_eps=1e-6"
    ),
    "torch.ops._C_ascend.compressor": (
        "x, wkv, wgate, state_cache, ape, norm_weight, rope_sin, rope_cos, state_block_table=None,"
        " cu_seqlens=None, seqused=None, start_pos=None, rope_head_dim=64, cmp_ratio=4, coff=1,"
        " norm_eps=1e-6, rotary_mode=1, cache_mode=1"
    ),
    "torch.ops._C.advance_step_flashattn_ascendc": (
        "num_seqs, num_queries, block_size, input_tokens, sampled_token_ids, input_positions,"
        " seq_lens, slot_mapping, block_tables"
    ),
    "torch.ops.npu.lightning_indexer": (
        f"query, key, weights, {_LENGTHS}, layout_query=None, layout_key=None, sparse_count=None,"
        " sparse_mode=None"
    ),
}
"""{name: arguments}, as Python writes them."""

SERVED = {call.name: call.served for call in reversed(CALLS)}
"""By name; of a name with several signatures the one that the page names first."""


def parameters_of(function: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function, or of an op, without their types."""
    is_op = isinstance(function, torch._ops.OpOverloadPacket)
    (found,) = get_signature_for_torch_op(function) if is_op else [inspect.signature(function)]
    return [each.replace(annotation=each.empty) for each in found.parameters.values()]


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_the_signature_is_the_published_one(name: str) -> None:
    theirs = parameters_of(eval(f"lambda {SIGNATURES[name]}: None"))
    ours = parameters_of(attrgetter(SERVED[name])(custom_pypto_serving))
    assert ours[: len(theirs)] == theirs
    assert all(each.default is not each.empty for each in ours[len(theirs) :])
