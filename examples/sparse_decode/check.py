"""Checks a step against the reference of the op's plugin."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from custom_pypto_plugin import Reference, SampleInput
from torch import Tensor

from benchmarks.eager import FusedArguments
from examples.sparse_decode.errors import StepError

RTOL = 0.03
ATOL = 1e-4
PUBLISHED_SHARE = 0.97


@dataclass(frozen=True)
class Closeness:
    """The error of a result against the reference."""

    share: float
    """Share of the elements that isclose(rtol 0.03, atol 1e-4) accepts, 0 to 1."""
    relative_l2: float

    @classmethod
    def of(cls, actual: Tensor, expected: Tensor) -> Closeness:
        """Compare two tensors of one shape in fp32."""
        actual, expected = actual.float(), expected.float()
        share = torch.isclose(actual, expected, RTOL, ATOL).float().mean()
        error = (actual - expected).norm() / expected.norm().clamp_min(1e-30)
        return cls(float(share), float(error))


def check_step(
    reference: Reference,
    arguments: FusedArguments,
    out: Tensor,
    rows: tuple[Tensor, ...],
    expected: Tensor,
    expected_rows: tuple[Tensor, ...],
) -> Closeness:
    """Compare one step's output and its new cache rows with the reference's.

    The output must be within the published tolerance and pass the plugin's own comparison, which is
    stricter but accepts either of two keys with nearly equal scores.

    Raises StepError.
    """
    closeness = Closeness.of(out, expected)
    if closeness.share < PUBLISHED_SHARE:
        raise StepError(
            f"output: {closeness.share:.2%} of the elements are within rtol {RTOL}, atol {ATOL} of"
            f" the reference; {PUBLISHED_SHARE:.0%} are required"
        )
    for name, ours, theirs in zip(
        ("kv_cache", "kr_cache", "index_k_cache"), rows, expected_rows, strict=True
    ):
        cache = Closeness.of(ours, theirs)
        if cache.share < PUBLISHED_SHARE:
            raise StepError(
                f"{name}: {cache.share:.2%} of the new rows' elements are within rtol {RTOL}, atol"
                f" {ATOL} of the reference; {PUBLISHED_SHARE:.0%} are required"
            )
    if reference.compare is not None:
        try:
            reference.compare(out, expected, SampleInput(tuple(arguments)))
        except AssertionError as error:
            raise StepError(f"output: {error}") from error
    return closeness
