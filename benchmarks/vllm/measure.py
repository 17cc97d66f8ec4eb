"""Measures cells; both alternatives take turns, so that other work on the machine slows both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import torch

from benchmarks import process_memory
from benchmarks.timing import time_interleaved
from benchmarks.vllm.cell import Cell, Prefill, Results
from benchmarks.vllm.engine import Engine, Settings
from benchmarks.vllm.stack import cache_bytes, write

# Prompts from which the memory of longer ones is estimated: it grows with their square.
_PROBES = (1024, 2048)
# Seconds of all rounds of a cell, and rounds.
_BUDGET, _LEAST, _MOST = 15.0, 3, 15
_BATCHED_TOKENS = 2048
# Of memory that is free: other programs need some, too.
_MOST_OF_FREE = 0.8


def layer(cell: Cell, dense_bytes: float) -> tuple[dict[str, float], float]:
    """Return the times of the attention of one layer in a decode step, and `Results.overlap`."""
    from benchmarks.vllm.layer import Sparse, make_dense

    torch.manual_seed(0)
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
    times: dict[str, list[float]] = {name: [] for name in running}
    while len(times["ours"]) < _LEAST or (
        len(times["ours"]) < _MOST and sum(map(sum, times.values())) < _BUDGET
    ):
        for name, engine in running.items():
            times[name].append(engine.step())
    results.steps[cell] = {name: median(each) for name, each in times.items()}
    results.parts[cell] = engines["ours"].parts(_LEAST)
    for engine in running.values():
        engine.abort()


def prefill(results: Results, cell: Cell, engines: Mapping[str, Engine]) -> None:
    """Time reading a prompt a request, once."""
    results.prefills[cell] = found = {}
    found["ours"] = Prefill(*engines["ours"].prefill(*cell))
    dense = engines["dense"]
    needed = _needed(dense, cell)
    fits = needed < _MOST_OF_FREE * process_memory.available()
    found["dense"] = Prefill(*dense.prefill(*cell)) if fits else Prefill(None, needed)


def _needed(dense: Engine, cell: Cell) -> float:
    """Return the estimated bytes of a prefill: a linear and a square share of two shorter ones."""
    if cell.tokens <= max(_PROBES):
        return 0.0
    (_, less), (_, more) = (dense.prefill(cell.requests, tokens) for tokens in _PROBES)
    if less is None or more is None:
        return 0.0
    once, times = _PROBES[0], cell.tokens / _PROBES[0]
    square = (more - less * _PROBES[1] / once) / (_PROBES[1] / once * (_PROBES[1] / once - 1))
    return (less - square) * times + square * times**2


@contextmanager
def engines(
    folder: Path, decodes: list[Cell], prefills: list[Cell], dense_bytes: float, *, is_tiny: bool
) -> Iterator[dict[str, Engine]]:
    """Start both engines, with caches for all cells that fit."""
    started: dict[str, Engine] = {}
    try:
        for name in ("dense", "ours"):
            is_sparse = name == "ours"
            fitting = [each for each in decodes if is_sparse or _dense_fits(each, dense_bytes)]
            write(folder / name, is_sparse=is_sparse, is_tiny=is_tiny)
            all_cells = [*fitting, *prefills]
            settings = Settings(
                folder / name,
                gigabytes=1
                + max(cache_bytes(*each, is_sparse=is_sparse) for each in all_cells) // 2**30,
                longest=max(each.tokens for each in all_cells),
                requests=max(each.requests for each in all_cells),
                batched_tokens=_BATCHED_TOKENS,
            )
            started[name] = Engine(settings)
        yield started
    finally:
        for engine in started.values():
            engine.stop()


def _dense_fits(cell: Cell, dense_bytes: float) -> bool:
    return cache_bytes(*cell, is_sparse=False) <= dense_bytes
