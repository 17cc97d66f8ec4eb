"""norm_and_rotate: the same as a rotation of complex numbers."""

import pytest
import torch
from custom_pypto_compressor import norm_and_rotate


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize("interleaved", [True, False])
def test_pairs_are_rotated_behind_the_norm(interleaved: bool, dtype: torch.dtype) -> None:
    make = torch.Generator().manual_seed(0)
    rows, weight = (torch.randn(*shape, 24, generator=make).to(dtype) for shape in ((2, 5), ()))
    angles = torch.randn(2, 5, 4, generator=make, dtype=torch.float64)
    cos, sin = (
        each.repeat_interleave(2, -1) if interleaved else each.repeat(1, 1, 2)
        for each in (angles.cos(), angles.sin())
    )
    result = norm_and_rotate(rows, weight, cos, sin, eps=0.1, interleaved=interleaved)

    normed = rows.double() * (rows.double().square().mean(-1, keepdim=True) + 0.1).rsqrt()
    normed *= weight.double()
    pairs = normed[..., 16:].unflatten(-1, (4, 2) if interleaved else (2, 4))
    pairs = pairs if interleaved else pairs.mT
    turned = torch.view_as_complex(pairs.contiguous()) * torch.polar(angles.new_ones(()), angles)
    pairs = torch.view_as_real(turned)
    normed[..., 16:] = (pairs if interleaved else pairs.mT).flatten(-2)
    assert result.dtype == dtype
    torch.testing.assert_close(result, normed.to(dtype))
