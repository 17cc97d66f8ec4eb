"""The goals for vLLM's engine, and which of them a run meets."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.goals import Goal
from benchmarks.vllm.cell import ONE_AT_16K, PREFILLS, SIXTEEN_AT_16K, Cell
from benchmarks.vllm.parts import GLUE
from benchmarks.vllm.results import Results

MIN_STEP_RATIO = 3.0
MIN_LAYER_RATIO = 10.0
MAX_GLUE = 0.10
MIN_INT8_RATIO = 1.8
# Memory of a prefill of 16K tokens against one of 4K.
MAX_GROWTH = 1.1
_SHORT, _LONG = PREFILLS
_SELECTION = Cell(16, 65536)


def goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the cells that were measured."""
    if ONE_AT_16K in results.layer:
        ratio = results.layer_ratio(ONE_AT_16K)
        if ratio is not None:
            of, what = (
                f"a layer's attention, {ONE_AT_16K.name}",
                "vLLM's reference MLA against ours",
            )
            yield Goal(of, what, ">=", MIN_LAYER_RATIO, ratio, "x")
    if _SELECTION in results.layer:
        of, ratio = f"selection, {_SELECTION.name}", results.int8_ratio(_SELECTION)
        yield Goal(of, "bf16 keys against int8 keys", ">=", MIN_INT8_RATIO, ratio, "x")
    for cell in (ONE_AT_16K, SIXTEEN_AT_16K):
        if cell in results.steps:
            yield from _goals_of_a_step(results, cell)
    if {_SHORT, _LONG} <= results.prefills.keys():
        short, long = (results.prefills[cell]["ours"].memory for cell in (_SHORT, _LONG))
        if short and long:
            what = "memory, 16K tokens against 4K"
            yield Goal("prefill", what, "<=", MAX_GROWTH, long / short, "x")


def _goals_of_a_step(results: Results, cell: Cell) -> Iterator[Goal]:
    of = f"a step, {cell.name}"
    ratio = results.step_ratio(cell)
    if ratio is not None:
        yield Goal(of, "dense against ours, whole engine", ">=", MIN_STEP_RATIO, ratio, "x")
    parts = results.parts[cell]
    share = parts[GLUE] / sum(parts.values())
    yield Goal(of, "share of glue", "<=", MAX_GLUE, share, "%")
