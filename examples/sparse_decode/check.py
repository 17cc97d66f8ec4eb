"""Checks a step against the reference of the op's plugin."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from custom_pypto_plugin import Reference, SampleInput
from torch import Tensor

from benchmarks.eager import FusedArguments
from examples.errors import ExampleError

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

    Both must be within the published tolerance. The output must also pass the plugin's own
    comparison, which is stricter but accepts either of two keys with nearly equal scores.

    Returns the closeness of the output. Raises ExampleError.
    """
    names = ("output", "kv_cache", "kr_cache", "index_k_cache")
    pairs = zip((out, *rows), (expected, *expected_rows), strict=True)
    found = {name: Closeness.of(*pair) for name, pair in zip(names, pairs, strict=True)}
    for name, closeness in found.items():
        if closeness.share < PUBLISHED_SHARE:
            raise ExampleError(
                f"{name}: {closeness.share:.2%} of the elements are within rtol {RTOL}, atol"
                f" {ATOL} of the reference; {PUBLISHED_SHARE:.0%} are required"
            )
    if reference.compare is not None:
        try:
            reference.compare(out, expected, SampleInput(tuple(arguments)))
        except AssertionError as error:
            raise ExampleError(f"output: {error}") from error
    return found["output"]
