"""Times one model with one implementation of its attention, in a process of its own.

``python -m benchmarks.transformers.worker JOB`` writes a pickled `Measured` for each cell; its
argument is a pickled `Job` in hexadecimal digits.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from benchmarks import process_memory
from benchmarks.cases.paging import generator, normal
from benchmarks.timing import time_interleaved
from benchmarks.transformers import models, parts
from benchmarks.transformers.cell import Cell, Cost, Job, Measured, Phase

# Longer cells are estimated from this context.
_PROBE = 1024
# Cells with a longer pass are repeated as little as possible.
_SLOW_SECONDS = 0.5


@torch.inference_mode()
def run(job: Job) -> Iterator[Measured]:
    """Time every cell whose estimate is within bounds."""
    torch.set_num_threads(job.threads)
    if job.way.is_ours:
        import custom_pypto_transformers  # noqa: F401
    model = models.make(job.model, job.dtype, job.way.implementation)
    known: dict[Phase, Cost] = {}
    for cell in job.cells:
        if cell.phase not in known:
            probe = Cell(cell.phase, min(cell.context, _PROBE))
            _, known[cell.phase] = _measure(job, model, probe, with_parts=False)
        reason = known[cell.phase].refusal(cell)
        if reason is not None:
            yield Measured(job.model, job.way, cell, left_out=reason)
            continue
        measured, known[cell.phase] = _measure(job, model, cell)
        yield measured


def _measure(job: Job, model: Any, cell: Cell, *, with_parts: bool = True) -> tuple[Measured, Cost]:
    step = _decode(job, model, cell) if cell.phase == "decode" else _prefill(job, model, cell)
    logits: list[Tensor] = []
    gc.collect()
    process_memory.trim_heap()
    start = time.perf_counter()
    peak = process_memory.growth(lambda: logits.append(step()))
    once = time.perf_counter() - start
    slow = once > _SLOW_SECONDS
    seconds = time_interleaved(
        {"step": step},
        warmups=0 if slow else 3,
        least=2 if slow else 5,
        # Each step adds a token to the cache: a few hardly change the time.
        most=50,
        budget=0.5 if job.quick else 3.0,
    )["step"]
    where = None
    if with_parts and job.way.is_ours and cell.phase == "decode":
        where = parts.measure(step, 5 if job.quick else 20)
    last = tuple(logits[0][0, -1].float().tolist())
    measured = Measured(job.model, job.way, cell, seconds, peak, parts=where, logits=last)
    return measured, Cost(cell, min(once, seconds), peak or 0)


def _decode(job: Job, model: Any, cell: Cell) -> Callable[[], Tensor]:
    """Return a step that decodes one token after a cache of random rows."""
    config, random = model.config, generator()
    batch, cached = cell.batch, cell.context - 1

    def rows(*shape: int) -> Tensor:
        return normal(*shape, generator=random, dtype=model.dtype)

    cache = _cache(job, config)
    cache.update(
        rows(batch, 1, cached, config.kv_lora_rank),
        rows(batch, 1, cached, config.qk_rope_head_dim),
        0,
    )
    cache.update_indexer(rows(batch, cached, config.index_head_dim), 0)
    token = torch.ones(batch, 1, dtype=torch.int64)

    def step() -> Tensor:
        logits: Tensor = model(token, None, None, cache).logits
        return logits

    return step


def _prefill(job: Job, model: Any, cell: Cell) -> Callable[[], Tensor]:
    shape = (cell.batch, cell.context)
    prompt = torch.randint(model.config.vocab_size, shape, generator=generator())

    def step() -> Tensor:
        cache = _cache(job, model.config)
        logits: Tensor = model(prompt, None, None, cache, logits_to_keep=1).logits
        return logits

    return step


def _cache(job: Job, config: Any) -> Any:
    if job.way.grows:
        from custom_pypto_transformers import GrowingCache

        return GrowingCache(config)
    return DynamicCache(config=config)


def _main() -> None:
    # Libraries that print must not write between the results.
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    for measured in run(pickle.loads(bytes.fromhex(sys.argv[1]))):
        results.write(pickle.dumps(measured))


if __name__ == "__main__":
    _main()
