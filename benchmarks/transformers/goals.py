"""What issue 11 asks of the speed, and which of it a run meets."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.reach import Goal
from benchmarks.transformers.cell import Cell
from benchmarks.transformers.models import MODELS
from benchmarks.transformers.parts import INDEXER
from benchmarks.transformers.results import DYNAMIC, GROWING, SDPA, Results, outside

LEAST_RATIO = 30.0
RATIO_FROM = 16384
MOST_OUTSIDE = 0.35
# Two runs of the same step differ by as much.
MOST_GROWTH = 1.1
MOST_APART = 0.01
SHORT, LONG = Cell("decode", 16384), Cell("decode", 131072)


def goals(results: Results) -> Iterator[Goal]:
    """Yield the goals that the measured cells can tell of."""
    for model in results.projected:
        yield from _of(results, model)


def _of(results: Results, model: str) -> Iterator[Goal]:
    text = MODELS[model].text
    cells = dict.fromkeys(m.cell for m in results.measured if m.model == model)
    for cell in cells:
        if cell.phase == "decode" and cell.context >= RATIO_FROM:
            for ours in (DYNAMIC, GROWING):
                ratio = results.ratio(model, SDPA, ours, cell)
                if ratio is not None:
                    what = f"sdpa against {ours.name}"
                    yield Goal(f"{text} {cell.name}", what, ">=", LEAST_RATIO, ratio, "x")
    for cell in cells:
        apart = results.apart(model, cell)
        if apart is not None:
            what = "logits apart from PyTorch's"
            yield Goal(f"{text} {cell.name}", what, "<=", MOST_APART, apart, "%")
    parts = results.parts(model, GROWING)
    for cell, seconds in parts.items():
        if cell.context == SHORT.context:
            whole, beside = sum(seconds.values()), outside(seconds)
            least = results.floor(model)
            yield Goal(
                f"{text} {cell.name}",
                "share of the time outside our ops",
                "<=",
                MOST_OUTSIDE,
                beside / whole,
                "%",
                at_peak=least / (least + whole - beside),
            )
    if SHORT in parts and LONG in parts:
        short, long = (sum(parts[cell].values()) - parts[cell][INDEXER] for cell in (SHORT, LONG))
        what = "time beside the indexer op, 128K against 16K"
        yield Goal(f"{text} decode", what, "<=", MOST_GROWTH, long / short, "x")
