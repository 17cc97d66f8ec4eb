"""The goals for models of transformers, and which of them a run meets.

- A decode step from 16K tokens on is at least 30 times faster than sdpa's.
- The logits are sdpa's, up to 1 %.
- With GrowingCache a decode step takes at most 1.5 times as long as its floor: reading the
  projections' weights, and our ops. The rest is transformers' Python, ropes, norms and masks.
- With GrowingCache only the indexer op's time grows with the context.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.goals import Goal
from benchmarks.transformers.cell import DYNAMIC, GROWING, SDPA, Cell
from benchmarks.transformers.models import MODELS
from benchmarks.transformers.parts import INDEXER
from benchmarks.transformers.results import Results

MIN_RATIO = 30.0
RATIO_FROM = 16384
MAX_OVER_FLOOR = 1.5
# Two runs of the same step differ by this much.
MAX_GROWTH = 1.1
MAX_LOGITS_ERROR = 0.01
SHORT, LONG = Cell("decode", 16384), Cell("decode", 131072)


def goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the cells that were measured."""
    for model in results.weight_bytes:
        yield from _goals_of(results, model)


def _goals_of(results: Results, model: str) -> Iterator[Goal]:
    text = MODELS[model].text
    for cell in results.cells(model):
        if cell.phase == "decode" and cell.context >= RATIO_FROM:
            for ours in (DYNAMIC, GROWING):
                ratio = results.ratio(model, SDPA, ours, cell)
                if ratio is not None:
                    what = f"sdpa against {ours.name}"
                    yield Goal(f"{text} {cell.name}", what, ">=", MIN_RATIO, ratio, "x")
    for cell in results.cells(model):
        error = results.logits_error(model, cell)
        if error is not None:
            what = "relative error of the logits"
            yield Goal(f"{text} {cell.name}", what, "<=", MAX_LOGITS_ERROR, error, "%")
    parts = results.parts(model, GROWING)
    for cell, seconds in parts.items():
        over = sum(seconds.values()) / results.floor(model, seconds)
        what = "a step against weights and our ops alone"
        yield Goal(f"{text} {cell.name}", what, "<=", MAX_OVER_FLOOR, over, "x")
    if SHORT in parts and LONG in parts:
        short, long = (sum(parts[cell].values()) - parts[cell][INDEXER] for cell in (SHORT, LONG))
        what = "time beside the indexer op, 128K against 16K"
        yield Goal(f"{text} decode", what, "<=", MAX_GROWTH, long / short, "x")
