"""How torchair expresses the op as a GE node; imported only once torchair is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from custom_pypto.core import contract
from custom_pypto.core.contracts import check_limits
from custom_pypto_blocks import ge_steps as steps
from torchair import ge
from torchair.ge import DataType, attr

from . import OP

if TYPE_CHECKING:
    from torchair.ge import Tensor


@steps.converter_of(OP)
def convert_grouped_matmul(a: SimpleNamespace) -> list[Tensor]:
    """GroupedMatmul, for groups of rows and weights that are no int4."""
    check_limits(contract(OP), "", vars(a))
    of_x, of_weight = a.x[0].dtype, a.weight[0].dtype
    if a.group_type != 0 or of_weight == DataType.DT_INT32:
        raise RuntimeError(
            f"{OP}: in a graph of torchair's graph engine, group_type must be 0 and weight must not"
            " be int4 in int32; use graphs that replay eager kernels: mode 'npugraph_ex', or a"
            " captured torch.npu.NPUGraph"
        )
    of_scales = of_x if of_weight == DataType.DT_INT8 else DataType.DT_FLOAT16
    # The operator wants a tensor in each list; an empty one stands for none.
    none = {
        "bias": of_x if of_x == DataType.DT_FLOAT16 else DataType.DT_FLOAT,
        "scale": DataType.DT_UINT64,
        "offset": DataType.DT_FLOAT,
        "antiquant_scale": of_scales,
        "antiquant_offset": of_scales,
    }
    (result,) = ge.custom_op(
        "GroupedMatmul",
        inputs={
            "x": a.x,
            "weight": a.weight,
            **{name: getattr(a, name) or [_empty(dtype)] for name, dtype in none.items()},
            "group_list": a.group_list,
            "per_token_scale": None,
        },
        attrs={
            "split_item": attr.Int(a.split_item),
            "dtype": attr.Int(-1),
            "transpose_weight": attr.Bool(False),
            "transpose_x": attr.Bool(False),
            "group_type": attr.Int(a.group_type),
            "group_list_type": attr.Int(a.group_list_type or 0),
            "act_type": attr.Int(a.act_type or 0),
            "tuning_config": attr.ListInt(a.tuning_config or [0]),
        },
        outputs=[("y", 1)],
    )
    return [result]


def _empty(dtype: int) -> Tensor:
    return steps.node("Fill", dims=steps.integers([0]), value=steps.cast(ge.Const(0.0), dtype))
