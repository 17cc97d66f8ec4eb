"""The goals for vLLM's engine, and which of them a run meets."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.goals import Goal
from benchmarks.vllm.cell import ONE_AT_16K, Cell, Results
from benchmarks.vllm.parts import GLUE

MIN_STEP_RATIO = 3.0
MIN_LAYER_RATIO = 10.0
MAX_GLUE = 0.10
MIN_INT8_RATIO = 1.8
# Memory of a prefill of 16K tokens against one of 4K.
MAX_GROWTH = 1.1
_SHORT, _LONG = Cell(1, 4096), ONE_AT_16K
_ONE_AT_64K = Cell(1, 65536)


def goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the cells that were measured."""
    if ONE_AT_16K in results.layer:
        of, what = "a layer's attention, 16K", "vLLM's dense MLA against ours"
        measured = results.layer_ratio(ONE_AT_16K)
        if measured is not None:
            yield Goal(of, what, ">=", MIN_LAYER_RATIO, measured, "x")
    if _ONE_AT_64K in results.layer:
        times = results.layer[_ONE_AT_64K]
        measured = times["indexer"] / times["indexer int8"]
        yield Goal("selection, 64K", "bf16 against int8", ">=", MIN_INT8_RATIO, measured, "x")
    if ONE_AT_16K in results.steps:
        measured = results.step_ratio(ONE_AT_16K)
        if measured is not None:
            what = "dense against ours, whole engine"
            yield Goal("a step, 16K", what, ">=", MIN_STEP_RATIO, measured, "x")
        parts = results.parts[ONE_AT_16K]
        share = parts[GLUE] / sum(parts.values())
        yield Goal("a step, 16K", "share of glue", "<=", MAX_GLUE, share, "%")
    if {_SHORT, _LONG} <= results.prefills.keys():
        short, long = (results.prefills[cell]["ours"].memory for cell in (_SHORT, _LONG))
        if short and long:
            what = "memory, 16K tokens against 4K"
            yield Goal("prefill", what, "<=", MAX_GROWTH, long / short, "x")
