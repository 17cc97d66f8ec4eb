"""How results are judged against the reference.

The published tolerance is rtol 0.0078 and atol 1e-4 on 99.5 % of the elements; these are the same
or sharper. Gradients are sums of many rounded products, so they are judged by their largest number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from custom_pypto_plugin import SampleInput

# Relative, absolute, cosine.
_TOLERANCES = {
    torch.bfloat16: (7.8e-3, 1e-4, 1.2e-5),
    torch.float16: (4e-3, 1e-4, 5e-7),
    torch.float32: (1e-3, 1e-5, 5e-11),
    torch.float64: (1e-9, 1e-9, 5e-19),
}
# Largest error of a gradient, as a part of its largest number.
GRADIENT_TOLERANCES = {
    torch.bfloat16: 1e-2,
    torch.float16: 2e-3,
    torch.float32: 1e-5,
    torch.float64: 1e-6,
}


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare the outputs of attention."""
    # Whoever asks for the reference alone need not have the suite.
    from custom_pypto_testing import comparison

    del sample
    tolerances = {
        dtype: comparison.Tolerance(relative, absolute, cosine, outliers=5e-3)
        for dtype, (relative, absolute, cosine) in _TOLERANCES.items()
    }
    comparison.assert_close(actual, expected, tolerances)


def compare_gradients(
    actual: Sequence[Tensor], expected: Sequence[Tensor], sample: SampleInput
) -> None:
    """Compare the results of the gradient."""
    del sample
    for index, (found, wanted) in enumerate(zip(actual, expected, strict=True)):
        assert found.dtype == wanted.dtype, f"result {index}: {found.dtype}, not {wanted.dtype}"
        assert found.shape == wanted.shape, f"result {index}: {found.shape}, not {wanted.shape}"
        if wanted.numel() == 0:
            continue
        found, wanted = found.cpu().double(), wanted.double()
        error = (found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-30)
        dtype = actual[0].dtype
        assert error <= GRADIENT_TOLERANCES[dtype], f"result {index}: {error:.2g} of the largest"


def compare_metadata(actual: Tensor, expected: Tensor, sample: SampleInput) -> None:
    """Compare shape and dtype: only CANN's kernels know what metadata means."""
    del sample
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
