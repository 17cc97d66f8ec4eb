"""How results are judged against the reference.

The published tolerance is rtol 0.0078 and atol 1e-4 on 99.5 % of the elements; these are the same
or sharper. Gradients are sums of many rounded products, so they are judged by their largest number.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

# Relative, absolute, cosine.
_TOLERANCES = {
    torch.bfloat16: (7.8e-3, 1e-4, 1.2e-5),
    torch.float16: (4e-3, 1e-4, 5e-7),
    torch.float32: (1e-3, 1e-5, 5e-11),
    torch.float64: (1e-9, 1e-9, 5e-19),
}
GRADIENT_TOLERANCES = {
    torch.bfloat16: 1e-2,
    torch.float16: 2e-3,
    torch.float32: 1e-5,
    torch.float64: 1e-6,
}
"""The largest error of a gradient, as a part of its largest number."""


def compare(actual: Any, expected: Any, sample: SampleInput | None) -> None:
    """Compare the outputs of attention."""
    # Whoever asks for the reference alone need not have the suite.
    from custom_pypto_testing.comparison import Tolerance, assert_close

    del sample
    tolerances = {dtype: Tolerance(*each, outliers=5e-3) for dtype, each in _TOLERANCES.items()}
    assert_close(actual, expected, tolerances)


def compare_gradients(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare the results of the gradient."""
    from custom_pypto_testing.comparison import Tolerance, assert_tensors_close

    del sample
    relative = GRADIENT_TOLERANCES[actual[0].dtype]
    for index, (found, wanted) in enumerate(zip(actual, expected, strict=True)):
        largest = float(wanted.nan_to_num(0, 0, 0).abs().max()) if wanted.numel() else 0.0
        tolerance = Tolerance(0.0, relative * largest, math.inf)
        assert_tensors_close(f"result {index}", found, wanted, {wanted.dtype: tolerance})


def compare_metadata(actual: Tensor, expected: Tensor, sample: SampleInput) -> None:
    """Compare shape and dtype: only CANN's kernels know what metadata means."""
    del sample
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
