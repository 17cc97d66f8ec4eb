"""The parts of a decode step's time, by torch's profiler."""

from __future__ import annotations

import timeit
from collections.abc import Callable

from torch.autograd.profiler import profile

INDEXER = "indexer op"
ATTENTION = "attention op"
PROJECTIONS = "projections"
CONCATENATION = "concatenation"
REST = "rest"
_OPS = {
    INDEXER: ("custom_pypto::npu_lightning_indexer_pto",),
    ATTENTION: ("custom_pypto::npu_sparse_flash_attention",),
    # bmm: kv_b_proj, absorbed into the query and the output.
    PROJECTIONS: ("aten::linear", "aten::bmm"),
    # Mostly of the caches; the ropes add a few bytes.
    CONCATENATION: ("aten::cat",),
}
OURS = (INDEXER, ATTENTION)


def measure(step: Callable[[], object], steps: int) -> dict[str, float]:
    """Return the seconds of a step by part; together they are the whole step's."""
    # Kineto, its newer backend, prints at every start and stop.
    with profile(use_kineto=False) as profiler:
        whole = timeit.timeit(step, number=steps) / steps
    seconds = {event.key: event.cpu_time_total * 1e-6 / steps for event in profiler.key_averages()}
    found = {part: sum(seconds.get(op, 0.0) for op in ops) for part, ops in _OPS.items()}
    return found | {REST: whole - sum(found.values())}
