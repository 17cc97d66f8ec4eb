"""scale_shift in torchair's graphs; imported only once torchair is."""

from __future__ import annotations

from typing import Any

import torchair


def convert_scale_shift(self: Any, scale: float, shift: float, meta_outputs: Any = None) -> Any:
    """Return the tensor that the graph operator ``AcmeScaleShift`` gives."""
    return torchair.ge.custom_op(
        "AcmeScaleShift",
        inputs={"x": self},
        outputs=["y"],
        attrs={"scale": torchair.ge.attr.Float(scale), "shift": torchair.ge.attr.Float(shift)},
    )
