"""The selection alone: keys are made so that key j's score is scores[j], exactly."""

from collections.abc import Callable
from pathlib import Path

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from cpp_constant import cpp_constant

indexer = torch.ops.custom_pypto.npu_lightning_indexer_pto
CSRC = Path(__file__).parents[1] / "csrc"

SPECIALS = [torch.nan, -torch.nan, torch.inf, -torch.inf, 0.0]
SIZES = [1, 16, 17, 129, 4096, 20000]


def select(scores: torch.Tensor, sparse_count: int) -> list[int]:
    """score = relu(k) - relu(-k) = k."""
    result = indexer(
        torch.tensor([1.0, -1.0]).reshape(1, 1, 2, 1),
        scores.reshape(1, -1, 1, 1),
        torch.tensor([1.0, -1.0]).reshape(1, 1, 2),
        layout_key="BSND",
        sparse_count=sparse_count,
        sparse_mode=0,
    )
    return result.flatten().tolist()


def in_order(scores: torch.Tensor) -> list[int]:
    """The highest first, NaN last."""
    order = scores.argsort(descending=True, stable=True)
    is_nan = scores[order].isnan()
    return torch.cat([order[~is_nan], order[is_nan].sort().values]).tolist()


def first(order: list[int], sparse_count: int) -> list[int]:
    return order[:sparse_count] + [-1] * (sparse_count - len(order))


def random_scores(size: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed))


def spread_over_exponents(size: int) -> torch.Tensor:
    bits = torch.randint(-(2**31), 2**31, (size,), generator=torch.Generator().manual_seed(1))
    return bits.to(torch.int32).view(torch.float32)


def nearly_equal_ends(size: int) -> torch.Tensor:
    """The first and the last position: where the size is a power of two, their bits all differ."""
    scores = random_scores(size)
    scores[0], scores[-1] = 0.5, 0.5 + 2**-24
    return scores


PATTERNS: dict[str, Callable[[int], torch.Tensor]] = {
    "random": random_scores,
    "all-equal": lambda n: torch.full((n,), 1.5),
    "zeros-of-both-signs": lambda n: torch.zeros(n) * (1 - 2 * (torch.arange(n) % 2)),
    "all-nan": lambda n: torch.full((n,), torch.nan),
    "all-minus-inf": lambda n: torch.full((n,), -torch.inf),
    "ascending": lambda n: torch.arange(n).float(),
    "few-values": lambda n: (torch.arange(n) * 7919 % 5).float(),
    "mostly-zero": lambda n: torch.where(torch.arange(n) % 97 == 3, random_scores(n), 0.0),
    "subnormal": lambda n: (torch.arange(n) * 7919 % n).to(torch.int32).view(torch.float32),
    "specials": lambda n: random_scores(n).where(
        torch.arange(n) % 3 > 0, torch.tensor(SPECIALS).repeat(n)[:n]
    ),
    "every-bit-pattern": spread_over_exponents,
    # A sort by distance from the highest score distinguishes these in part, or not at all.
    "one-far-above": lambda n: random_scores(n).where(torch.arange(n) != n // 3, 1e30),
    "one-far-below": lambda n: random_scores(n).where(torch.arange(n) != n // 3, -1e30),
    "farther-apart-than-fp32": lambda n: random_scores(n).sign() * 3e38 + random_scores(n, 1),
    "two-clusters": lambda n: (torch.arange(n) * 7919 % 2) + 1e-6 * random_scores(n),
    "nearly-equal-ends": nearly_equal_ends,
    "neighbouring-floats": lambda n: (
        torch.nextafter(torch.ones(1), torch.full((1,), 2.0))
        .sub(1)
        .mul(torch.arange(n) * 7919 % n)
        .add(1)
    ),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_selects_the_best_in_order(pattern: str) -> None:
    for size in SIZES:
        scores = PATTERNS[pattern](size)
        order = in_order(scores)
        for sparse_count in {1, 7, min(size, 2048), max(1, size // 2), size + 5}:
            assert select(scores, sparse_count) == first(order, sparse_count), (size, sparse_count)


LARGEST_SAMPLE = cpp_constant(CSRC, "kLargestSample")
SHORT_ROW = cpp_constant(CSRC, "kShortRow")


@pytest.mark.parametrize("sample", [LARGEST_SAMPLE, LARGEST_SAMPLE // 2, LARGEST_SAMPLE // 4])
@pytest.mark.parametrize("size", [2 * SHORT_ROW, 4 * SHORT_ROW])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_sampled_positions_that_mislead(beside: int, size: int, sample: int) -> None:
    """All high scores, or all low ones, where a sample looks: in the middle of its periods."""
    positions, period = torch.arange(size), size // sample
    # More than are special, so that the sample's threshold alone may keep too few; and few, so that
    # it keeps any number of them, one too few among these.
    sparse_counts = [4 * LARGEST_SAMPLE, *range(1, 33)]
    for sampled, elsewhere in ((1.0, 0.0), (0.0, 1.0)):
        special = positions % period == period // 2 + beside
        scores = torch.where(special, sampled, elsewhere) * (1 + positions / size)
        order = in_order(scores)
        for sparse_count in sparse_counts:
            assert select(scores, sparse_count) == first(order, sparse_count)
