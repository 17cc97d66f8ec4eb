"""The gradient as a GE node; imported only once torchair is. ops.toml says that of the forward."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from custom_pypto.core import contract
from custom_pypto.core.contracts import check_limits
from custom_pypto_blocks.ge_steps import converter_of
from torchair import ge
from torchair.ge import attr

from . import ATTENTION_GRAD
from .ops import NPU_ROW_SIZE

_RENAMED = {"q": "query", "dout": "d_out", "attn_out": "out", "softmax_lse": "lse"}
_INTEGERS = ("cmp_ratio", "ori_mask_mode", "cmp_mask_mode", "ori_win_left", "ori_win_right")
_GRADIENTS = ["d_query", "d_ori_kv", "d_cmp_kv", "d_sinks"]


@converter_of(ATTENTION_GRAD)
def convert_grad(a: SimpleNamespace) -> tuple[Any, ...]:
    """npu_sparse_flash_mla_grad as SparseFlashMlaGrad."""
    op, given = contract(ATTENTION_GRAD), vars(a)
    check_limits(op, "aclnnSparseFlashMlaGrad", given)
    scale = NPU_ROW_SIZE**-0.5 if a.softmax_scale is None else a.softmax_scale
    tensors = [each.name for each in op.arguments if each.is_tensor]
    gradients = ge.custom_op(
        "SparseFlashMlaGrad",
        inputs={_RENAMED.get(name, name): given[name] for name in tensors},
        attrs={
            "scale_value": attr.Float(scale),
            **{name: attr.Int(given[name]) for name in _INTEGERS},
            **{name: attr.Str(given[name]) for name in ("layout_q", "layout_kv")},
        },
        outputs=[*_GRADIENTS, "ori_softmax_l1_norm", "cmp_softmax_l1_norm"],
    )
    return tuple(gradients)
