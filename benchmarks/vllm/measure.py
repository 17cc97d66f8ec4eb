"""Measures cells. Both engines take turns, so that other work on the machine slows both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks import process_memory
from benchmarks.timing import time_interleaved
from benchmarks.vllm.cell import Cell
from benchmarks.vllm.engine import Engine, Settings
from benchmarks.vllm.results import Prefill, Results
from benchmarks.vllm.stack import cache_bytes, write

# Rounds of a cell, and seconds for all of them.
_LEAST, _MOST, _BUDGET = 3, 15, 15.0
_BATCHED_TOKENS = 2048
# The memory of a dense prompt is estimated from prompts of this length and of twice as much.
_PROBE = 1024
# Of the memory that is free; other programs need some, too.
_MOST_OF_FREE = 0.8


def layer(cell: Cell, dense_bytes: float) -> tuple[dict[str, float], float]:
    """Return the times of the attention of one layer in a decode step, and `Results.overlap`."""
    from benchmarks.vllm.layer import Sparse, make_dense

    sparse = Sparse(cell.tokens, cell.requests)
    calls = {
        "write": sparse.write,
        "indexer": sparse.select,
        "indexer int8": sparse.select_int8,
        "attention": sparse.attend,
    }
    if _dense_fits(cell, dense_bytes):
        calls["dense"] = make_dense(cell.tokens, cell.requests)
    overlap = sparse.overlap()
    return time_interleaved(calls, least=_LEAST, most=50, budget=_BUDGET / 5), overlap


def step(results: Results, cell: Cell, engines: Mapping[str, Engine], dense_bytes: float) -> None:
    """Time steps in which each request gets a token."""
    running = {
        name: engine
        for name, engine in engines.items()
        if name != "dense" or _dense_fits(cell, dense_bytes)
    }
    for engine in running.values():
        engine.decode(*cell)
    steps = {name: engine.step for name, engine in running.items()}
    results.steps[cell] = time_interleaved(
        steps, warm=False, least=_LEAST, most=_MOST, budget=_BUDGET
    )
    results.parts[cell] = engines["ours"].parts(_LEAST)
    for engine in running.values():
        engine.abort()


def prefill(results: Results, cell: Cell, engines: Mapping[str, Engine]) -> None:
    """Time reading a prompt a request, once."""
    ours, dense = engines["ours"], engines["dense"]
    results.prefills[cell] = {"ours": Prefill(*ours.prefill(*cell))}
    needed = _needed(dense, cell)
    fits = needed is not None and needed < _MOST_OF_FREE * process_memory.available()
    results.prefills[cell]["dense"] = (
        Prefill(*dense.prefill(*cell)) if fits else Prefill(None, needed)
    )


def _needed(dense: Engine, cell: Cell) -> float | None:
    """Return the estimated bytes of a dense prefill; None: unknown.

    A part of them grows with the length of a prompt, a part with its square.
    """
    if cell.tokens <= 2 * _PROBE:
        return 0.0
    (_, once), (_, twice) = (dense.prefill(cell.requests, n * _PROBE) for n in (1, 2))
    if once is None or twice is None:
        return None
    square, times = (twice - 2 * once) / 2, cell.tokens / _PROBE
    return (once - square) * times + square * times**2


@contextmanager
def engines(
    folder: Path, decodes: list[Cell], prefills: list[Cell], dense_bytes: float, *, is_tiny: bool
) -> Iterator[dict[str, Engine]]:
    """Start both engines, with caches for all cells that fit."""
    started: dict[str, Engine] = {}
    try:
        for name in ("dense", "ours"):
            is_sparse = name == "ours"
            write(folder / name, is_sparse=is_sparse, is_tiny=is_tiny)
            cells = [each for each in decodes if is_sparse or _dense_fits(each, dense_bytes)]
            cells += prefills
            settings = Settings(
                folder / name,
                cache_bytes=max(cache_bytes(*each, is_sparse=is_sparse) for each in cells),
                longest=max(each.tokens for each in cells),
                requests=max(each.requests for each in cells),
                batched_tokens=_BATCHED_TOKENS,
            )
            started[name] = Engine(settings)
        yield started
    finally:
        for engine in started.values():
            engine.stop()


def _dense_fits(cell: Cell, dense_bytes: float) -> bool:
    return cache_bytes(*cell, is_sparse=False) <= dense_bytes
