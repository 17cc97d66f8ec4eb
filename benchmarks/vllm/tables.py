"""A run as tables, row by row."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.report import duration, percent, ratio
from benchmarks.vllm.cell import Cell
from benchmarks.vllm.parts import PARTS
from benchmarks.vllm.results import Prefill, Results
from benchmarks.vllm.stack import LAYERS


def _row(name: str, cells: Iterable[str]) -> str:
    return f"  {name:<12}" + "".join(f"{cell:>16}" for cell in cells)


_LAYER = ("dense", "write", "indexer", "attention", "ours", "dense/ours")
_PREFILL = ("dense", "ours", "its memory", "our memory")
LAYER_HEADING = (
    "attention of one layer, bf16: a token for each request",
    _row("", (*_LAYER, "int8 indexer", "bf16/int8", "overlap")),
)
STEP_HEADING = (
    f"\n{LAYERS} layers in vLLM's engine, bf16: a step, in which each request gets a token",
    _row("", ("dense", "ours", "dense/ours", *PARTS)),
)
PREFILL_HEADING = (
    f"\n{LAYERS} layers in vLLM's engine, bf16: reading a prompt a request; memory beside caches",
    _row("", _PREFILL),
)


def layer(results: Results, cell: Cell) -> str:
    """Return the times of the attention of one layer."""
    times = results.layer[cell]
    parts = [times.get(name) for name in ("dense", "write", "indexer", "attention")]
    cells = [
        *map(duration, [*parts, results.layer_ours(cell)]),
        ratio(results.layer_ratio(cell)),
        duration(times["indexer int8"]),
        ratio(results.int8_ratio(cell)),
        percent(results.overlap[cell]),
    ]
    return _row(cell.name, cells)


def step(results: Results, cell: Cell) -> str:
    """Return the times of a step of the engine."""
    times, parts = results.steps[cell], results.parts[cell]
    whole = sum(parts.values())
    cells = [
        duration(times.get("dense")),
        duration(times["ours"]),
        ratio(results.step_ratio(cell)),
        *(percent(parts[part] / whole) for part in PARTS),
    ]
    return _row(cell.name, cells)


def prefill(results: Results, cell: Cell) -> str:
    """Return the times and the memory of reading prompts."""
    dense, ours = (results.prefills[cell][name] for name in ("dense", "ours"))
    needed = "needs " * (dense.seconds is None) + _size(dense)
    return _row(cell.name, [duration(dense.seconds), duration(ours.seconds), needed, _size(ours)])


def _size(prefill: Prefill) -> str:
    return "-" if prefill.memory is None else f"{prefill.memory / 2**30:.2f} GiB"
