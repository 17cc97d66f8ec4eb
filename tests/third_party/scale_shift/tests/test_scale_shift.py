"""scale_shift beyond what the conformance suite of custom_pypto checks for every op."""

from __future__ import annotations

import custom_pypto  # noqa: F401
import pytest
import torch


def test_scales_and_shifts():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = torch.tensor([[3.0, 5.0], [7.0, 9.0]])
    assert torch.equal(torch.ops.custom_pypto.scale_shift(x, 2.0, 1.0), expected)


def test_refuses_integers_by_name():
    with pytest.raises(RuntimeError, match=r"scale_shift: argument 'self' must be .*int64"):
        torch.ops.custom_pypto.scale_shift(torch.arange(3), 2.0, 1.0)
