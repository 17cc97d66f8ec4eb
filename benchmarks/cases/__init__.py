"""Every case: the sizes that the ops are published with, and long contexts."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.case import Planned
from benchmarks.cases import add, attention, fused, indexer


def all_cases() -> Iterator[Planned]:
    """Yield every case, op by op."""
    yield from add.cases()
    yield from indexer.cases()
    yield from attention.cases()
    yield from fused.cases()
