"""How torchair turns the ops into nodes of a GE graph. Imported only where torchair is."""

from __future__ import annotations

from typing import Any

from custom_pypto.core.ge_operators import is_registered
from torchair import ge

# What AddCustom takes; Add takes more, but a script must not depend on which is there.
_DTYPES = (
    ge.DataType.DT_FLOAT16,
    ge.DataType.DT_BF16,
    ge.DataType.DT_FLOAT,
    ge.DataType.DT_INT32,
)


def add_custom(self: Any, other: Any) -> Any:
    """One AddCustom node where an opp package registers that type, else CANN's own Add.

    Raises:
        RuntimeError: a dtype that the op does not take on NPUs.
    """
    if self.dtype not in _DTYPES:
        given = str(self.meta.dtype).removeprefix("torch.")
        raise RuntimeError(
            "add_custom: argument 'self' must be float16, bfloat16, float32 or int32 in a GE graph,"
            f" got {given}"
        )
    if is_registered("AddCustom"):
        return ge.custom_op("AddCustom", inputs={"x": self, "y": other}, outputs=["z"])
    return ge.custom_op("Add", inputs={"x1": self, "x2": other}, outputs=["y"])


def add_custom_backward(self: Any) -> tuple[Any, Any]:
    """Two copies of the gradient."""
    return ge.Clone(self), ge.Clone(self)
