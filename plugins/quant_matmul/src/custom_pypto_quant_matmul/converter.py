"""How torchair expresses npu_quant_matmul as GE nodes; imported only once torchair is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from custom_pypto.core import contract
from custom_pypto.core.contracts import check_limits
from custom_pypto_blocks import ge_steps as steps
from torchair import ge
from torchair.ge import attr

if TYPE_CHECKING:
    from torchair.ge import Tensor

_FLOAT, _FLOAT16, _INT8, _INT32, _BFLOAT16 = 0, 1, 2, 3, 27
_OF_NUMBERS = {None: _INT8, 1: _INT8, 3: _INT32, 5: _FLOAT16, 15: _BFLOAT16}
"""The engine's dtypes, of the numbers of torch's."""


@steps.converter_of("npu_quant_matmul")
def convert_quant_matmul(a: SimpleNamespace) -> Tensor:
    """QuantBatchMatmulV3; before it TransQuantParamV2, as the launch has it."""
    check_limits(contract("npu_quant_matmul"), "", vars(a))
    dtype, scale = _OF_NUMBERS[a.output_dtype], a.scale
    if scale.dtype == _FLOAT and a.pertoken_scale is None and dtype in (_INT8, _FLOAT16):
        inputs = {"scale": scale, "offset": a.offset}
        scale = ge.custom_op("TransQuantParamV2", inputs=inputs, outputs=["y"])
    names = ("x1", "x2", "offset", "bias", "pertoken_scale")
    result: Tensor = ge.custom_op(
        "QuantBatchMatmulV3",
        inputs={**{name: getattr(a, name) for name in names}, "scale": scale},
        attrs={
            "dtype": attr.Int(dtype),
            "transpose_x1": attr.Bool(False),
            "transpose_x2": attr.Bool(False),
        },
        outputs=["y"],
    )
    return result
