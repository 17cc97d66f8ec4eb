"""The goals of issue 11 for models of transformers, and which of them a run meets."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.goals import Goal
from benchmarks.transformers.cell import Cell
from benchmarks.transformers.models import MODELS
from benchmarks.transformers.parts import INDEXER
from benchmarks.transformers.results import DYNAMIC, GROWING, SDPA, Results, outside

MIN_RATIO = 30.0
RATIO_FROM = 16384
MAX_OUTSIDE = 0.35
# Two runs of the same step differ by this much.
MAX_GROWTH = 1.1
MAX_LOGITS_ERROR = 0.01
SHORT, LONG = Cell("decode", 16384), Cell("decode", 131072)


def goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the cells that were measured."""
    for model in results.weight_bytes:
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
                    yield Goal(f"{text} {cell.name}", what, ">=", MIN_RATIO, ratio, "x")
    for cell in cells:
        error = results.logits_error(model, cell)
        if error is not None:
            what = "relative error of the logits"
            yield Goal(f"{text} {cell.name}", what, "<=", MAX_LOGITS_ERROR, error, "%")
    parts = results.parts(model, GROWING)
    for cell, seconds in parts.items():
        if cell.context == SHORT.context:
            whole, beside = sum(seconds.values()), outside(seconds)
            least = results.floor(model)
            yield Goal(
                f"{text} {cell.name}",
                "share of the time outside our ops",
                "<=",
                MAX_OUTSIDE,
                beside / whole,
                "%",
                at_peak=least / (least + whole - beside),
            )
    if SHORT in parts and LONG in parts:
        short, long = (sum(parts[cell].values()) - parts[cell][INDEXER] for cell in (SHORT, LONG))
        what = "time beside the indexer op, 128K against 16K"
        yield Goal(f"{text} decode", what, "<=", MAX_GROWTH, long / short, "x")
