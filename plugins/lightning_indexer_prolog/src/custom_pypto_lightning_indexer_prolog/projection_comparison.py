"""How a result is judged against the reference.

The published rule is ``isclose(rtol=0.005, atol=1e-4)`` on 99.5 % of the elements. The others have
a bound: two orders of summation may round to neighbouring bf16 numbers. Their int8 numbers are then
off by one, and scales and weights by the distance of the neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments

if TYPE_CHECKING:
    from custom_pypto_plugin import SampleInput
    from torch import Tensor

CLOSE_PART = 0.995
_RELATIVE, _ABSOLUTE = 0.005, 1e-4
_NEIGHBOURS = 2.0**-7
"""The largest distance of neighbouring bf16 numbers, as a part of them."""
_NAMES = ("query", "query_scale", "weights")


def assert_close(actual: Tensor, expected: Tensor, what: str) -> None:
    """Raise AssertionError unless ``actual`` is, within the rule, what was expected."""
    assert actual.shape == expected.shape, f"{what}: {actual.shape} is not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype} is not {expected.dtype}"
    if actual.numel() == 0:
        return
    left, right = actual.double(), expected.double()
    close = left.isclose(right, rtol=_RELATIVE, atol=_ABSOLUTE, equal_nan=True)
    # A few elements always may be others.
    allowed = max(3, int(actual.numel() * (1 - CLOSE_PART)))
    others = int((~close).sum())
    assert others <= allowed, f"{what}: {others} of {actual.numel()} elements are not close"
    error = (left - right)[~close].abs()
    bound = (
        torch.ones((), device="cpu")
        if actual.dtype == torch.int8
        else right[~close].abs() * _NEIGHBOURS
    )
    assert (error <= bound).all(), f"{what}: an element is off by {error.max().item():.3g}"


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare what the op returns."""
    del sample
    for name, left, right in zip(_NAMES, actual, expected, strict=True):
        assert_close(left, right, name)


def compare_caches(
    actual: Mapping[str, Any], expected: Mapping[str, Any], sample: SampleInput
) -> None:
    """Compare the caches: the slots that were written, and that all others were not."""
    given = bind_arguments(contract("npu_lightning_indexer_prolog_pto"), sample.args, sample.kwargs)
    slots = given["idx_k_cache_index"].long()
    for name, after in actual.items():
        left, right = after.flatten(0, 1), expected[name].flatten(0, 1)
        assert_close(left[slots], right[slots], name)
        others = torch.ones(len(left), dtype=torch.bool, device=left.device)
        others[slots] = False
        assert torch.equal(left[others], right[others]), f"{name}: another slot was written"
