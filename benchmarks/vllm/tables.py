"""A run as tables."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.report import duration, percent, ratio
from benchmarks.vllm.cell import Prefill, Results
from benchmarks.vllm.parts import PARTS


def layer(results: Results) -> Iterator[str]:
    """Yield the times of the attention of one layer."""
    yield "attention of one layer, bf16: a token for each request"
    names = ("dense", "write", "indexer", "attention", "ours", "dense/ours")
    yield _row("", *names, "int8 indexer", "bf16/int8", "overlap")
    for cell, times in results.layer.items():
        parts = [times["write"], times["indexer"], times["attention"]]
        yield _row(
            cell.name,
            *map(duration, [times.get("dense"), *parts, sum(parts)]),
            ratio(results.layer_ratio(cell)),
            duration(times["indexer int8"]),
            ratio(times["indexer"] / times["indexer int8"]),
            percent(results.overlap[cell]),
        )


def steps(results: Results) -> Iterator[str]:
    """Yield the times of a step of the engine."""
    yield "two layers in vLLM's engine, bf16: a step, in which each request gets a token"
    yield _row("", "dense", "ours", "dense/ours", *PARTS)
    for cell, times in results.steps.items():
        parts = results.parts[cell]
        whole = sum(parts.values())
        yield _row(
            cell.name,
            duration(times.get("dense")),
            duration(times["ours"]),
            ratio(results.step_ratio(cell)),
            *(percent(parts[part] / whole) for part in PARTS),
        )


def prefills(results: Results) -> Iterator[str]:
    """Yield the times and the memory of reading prompts."""
    yield "two layers in vLLM's engine, bf16: reading a prompt a request; memory beside caches"
    yield _row("", "dense", "ours", "its memory", "our memory")
    for cell, found in results.prefills.items():
        dense, ours = found["dense"], found["ours"]
        memory = "needs " * (dense.seconds is None) + _size(dense)
        yield _row(cell.name, duration(dense.seconds), duration(ours.seconds), memory, _size(ours))


def _size(prefill: Prefill) -> str:
    return "-" if prefill.memory is None else f"{prefill.memory / 2**20:.0f} MiB"


def _row(name: str, *cells: str) -> str:
    return f"  {name:<12}" + "".join(f"{cell:>16}" for cell in cells)
