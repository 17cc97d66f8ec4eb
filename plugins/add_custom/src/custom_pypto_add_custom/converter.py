"""How torchair turns the ops into nodes of a GE graph. Imported only where torchair is."""

from __future__ import annotations

from typing import Any

from torchair import ge


def add_custom(self: Any, other: Any) -> Any:
    """One AddCustom node where an opp package registers that type, else CANN's own Add."""
    try:
        return ge.custom_op("AddCustom", inputs={"x": self, "y": other}, outputs=["z"])
    except RuntimeError:  # how torchair says that no opp package registers the type
        return ge.custom_op("Add", inputs={"x1": self, "x2": other}, outputs=["y"])


def add_custom_backward(self: Any) -> tuple[Any, Any]:
    """Two copies of the gradient."""
    return ge.Clone(self), ge.Clone(self)
