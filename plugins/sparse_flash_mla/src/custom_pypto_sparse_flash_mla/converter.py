"""The gradient as a GE node; imported only once torchair is. ops.toml says that of the forward."""

from __future__ import annotations

from typing import Any

from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments, check_limits
from torchair import ge
from torchair.ge import attr

from . import ATTENTION_GRAD
from .ops import NPU_ROW_SIZE

_RENAMED = {"q": "query", "dout": "d_out", "attn_out": "out", "softmax_lse": "lse"}
_INTEGERS = ("cmp_ratio", "ori_mask_mode", "cmp_mask_mode", "ori_win_left", "ori_win_right")


def convert_grad(*args: Any, meta_outputs: Any = None, **kwargs: Any) -> tuple[Any, ...]:
    """npu_sparse_flash_mla_grad as SparseFlashMlaGrad."""
    del meta_outputs
    op = contract(ATTENTION_GRAD)
    given = bind_arguments(op, args, kwargs)
    check_limits(op, "aclnnSparseFlashMlaGrad", given)
    scale = given["softmax_scale"]
    if scale is None:
        scale = NPU_ROW_SIZE**-0.5
    tensors = [each.name for each in op.arguments if each.is_tensor]
    gradients = ge.custom_op(
        "SparseFlashMlaGrad",
        inputs={_RENAMED.get(name, name): given[name] for name in tensors},
        attrs={
            "scale_value": attr.Float(scale),
            **{name: attr.Int(given[name]) for name in _INTEGERS},
            "layout_q": attr.Str(given["layout_q"]),
            "layout_kv": attr.Str(given["layout_kv"]),
        },
        outputs=[
            "d_query",
            "d_ori_kv",
            "d_cmp_kv",
            "d_sinks",
            "ori_softmax_l1_norm",
            "cmp_softmax_l1_norm",
        ],
    )
    return tuple(gradients)
