"""Decodes step by step with our ops and with PyTorch, and checks each step by the reference."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import custom_pypto.core
import torch
from torch import Tensor

from benchmarks.eager import Baseline, FusedArguments
from examples.sparse_decode.session import Session

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


@dataclass(frozen=True)
class Step:
    """The results of one decode step."""

    blocks: int
    ours_seconds: float
    eager_seconds: float
    eager_products: str
    """The dtype of eager's matrix products: bf16 or fp32, whichever is faster on this machine."""
    ours: Closeness
    eager: Closeness


def decode(session: Session, steps: int) -> Iterator[Step]:
    """Decode steps tokens of every sequence; yield after each.

    Each step runs on the same caches three times: by npu_sparse_attention_pto, by the fastest
    eager baseline, by the plugin's reference. All three write the same rows; ours are restored
    after it, so that the next step continues from what our op wrote.

    Ends the program when a step is outside the tolerance.
    """
    fused: Callable[..., Tensor] = torch.ops.custom_pypto.npu_sparse_attention_pto
    reference = custom_pypto.core.reference("npu_sparse_attention_pto")
    assert reference is not None
    for number in range(steps):
        arguments = session.next_step()
        slots = arguments.cache_index.flatten().long()

        if number == 0:
            products, eager = _fastest_eager(arguments, session.weights)
        eager_out, eager_seconds = _timed(eager, arguments)
        out, ours_seconds = _timed(fused, *arguments)
        rows = session.cache.read(slots)
        expected = reference.function(*arguments)
        expected_rows = session.cache.read(slots)
        session.cache.write(slots, *rows)
        step = f"step {number + 1} of {steps}"
        closeness = _check(step, (out, *rows), (expected, *expected_rows))
        yield Step(
            blocks=session.cache.used_blocks,
            ours_seconds=ours_seconds,
            eager_seconds=eager_seconds,
            eager_products=products,
            ours=closeness,
            eager=Closeness.of(eager_out, expected),
        )


def _fastest_eager(
    arguments: FusedArguments, weights: dict[str, Tensor]
) -> tuple[str, Callable[[FusedArguments], Tensor]]:
    """Return torch eager with products in bf16, or in fp32 with weights widened once."""
    widened = {name: value.float() for name, value in weights.items()}
    in_fp32 = Baseline.in_fp32().sparse_attention
    ways: dict[str, Callable[[FusedArguments], Tensor]] = {
        "bf16": Baseline().sparse_attention,
        "fp32": lambda arguments: in_fp32(arguments._replace(**widened)),
    }
    # The first call of each is a warm-up.
    seconds = {name: min(_timed(way, arguments)[1] for _ in range(2)) for name, way in ways.items()}
    fastest = min(seconds, key=seconds.__getitem__)
    return fastest, ways[fastest]


def _check(step: str, results: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> Closeness:
    """Expect one step's output and its new cache rows within the published tolerance."""
    names = ("output", "kv_cache", "kr_cache", "index_k_cache")
    found = dict(zip(names, map(Closeness.of, results, expected), strict=True))
    for name, closeness in found.items():
        if closeness.share < PUBLISHED_SHARE:
            raise SystemExit(
                f"{step}: {name}: {closeness.share:.2%} of the elements are within rtol {RTOL},"
                f" atol {ATOL} of the reference; {PUBLISHED_SHARE:.0%} are required"
            )
    return found["output"]


def _timed(op: Callable[..., Tensor], *arguments: object) -> tuple[Tensor, float]:
    start = time.perf_counter()
    out = op(*arguments)
    return out, time.perf_counter() - start
