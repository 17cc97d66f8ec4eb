"""Checking a step against the reference that the op's plugin publishes."""

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
    """How near a result is to the reference."""

    share: float
    """Share of the elements that isclose(rtol 0.03, atol 1e-4) accepts, at worst 0, at best 1."""
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
    """Hold one step's output and its new cache rows against the reference's.

    The output passes when the published tolerance holds and the plugin's own comparison, which is
    stricter and knows that keys of nearly equal score may be chosen either way, accepts it.

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
