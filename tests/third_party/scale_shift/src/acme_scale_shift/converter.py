"""scale_shift in torchair's graphs; imported only once torchair is."""

from __future__ import annotations

from typing import Any

from torchair import ge


def convert_scale_shift(self: Any, scale: float, shift: float) -> Any:
    """Return the tensor that the graph operator ``AcmeScaleShift`` gives."""
    return ge.custom_op(
        "AcmeScaleShift",
        inputs={"x": self},
        outputs=["y"],
        attrs={"scale": ge.attr.Float(scale), "shift": ge.attr.Float(shift)},
    )
