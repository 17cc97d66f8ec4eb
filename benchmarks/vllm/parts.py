"""The parts of a step's time, by torch's profiler."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from torch.autograd.profiler import profile, record_function

INDEXER = "indexer"
ATTENTION = "attention"
PRODUCTS = "its products"
GLUE = "glue"
REST = "rest of vLLM"
PARTS = (INDEXER, ATTENTION, PRODUCTS, GLUE, REST)
_OURS = "ours"
_PART_OF = {
    "custom_pypto::npu_lightning_indexer_pto": INDEXER,
    "custom_pypto::npu_quant_lightning_indexer": INDEXER,
    "custom_pypto::npu_sparse_flash_attention": ATTENTION,
    "aten::linear": PRODUCTS,
    "aten::bmm": PRODUCTS,
    "_C::onednn_mm": PRODUCTS,
    "_C::weight_packed_linear": PRODUCTS,
}


def measure(step: Callable[[], object], steps: int) -> dict[str, float]:
    """Return the seconds of a step by part; together they are the whole step's."""
    # Kineto, its newer backend, prints at every start and stop.
    with _marked(), profile(use_kineto=False) as profiler:
        whole = timeit.timeit(step, number=steps) / steps
    seconds = dict.fromkeys(PARTS[:-1], 0.0)
    for event in profiler.function_events:
        if event.name == _OURS:
            seconds[GLUE] += event.cpu_time_total
            for part, inner in _parts(event):
                seconds[part] += inner
                seconds[GLUE] -= inner
    found = {part: microseconds * 1e-6 / steps for part, microseconds in seconds.items()}
    return found | {REST: whole - sum(found.values())}


def _parts(event: Any) -> Iterator[tuple[str, float]]:
    for child in event.cpu_children:
        if child.name in _PART_OF:
            yield _PART_OF[child.name], child.cpu_time_total
        else:
            yield from _parts(child)


@contextmanager
def _marked() -> Iterator[None]:
    """Mark what is ours in the profile. Glue is what these two calls do beside the other parts."""
    from custom_pypto_vllm.layer import SparseAttentionLayer
    from custom_pypto_vllm.metadata import StepMetadataBuilder

    with (
        mock.patch.object(SparseAttentionLayer, "forward", _marking(SparseAttentionLayer.forward)),
        mock.patch.object(StepMetadataBuilder, "build", _marking(StepMetadataBuilder.build)),
    ):
        yield


def _marking(method: Callable[..., Any]) -> Callable[..., Any]:
    def marking(*args: Any, **kwargs: Any) -> Any:
        with record_function(_OURS):
            return method(*args, **kwargs)

    return marking
