"""Decodes step by step with our ops, with PyTorch, and with the reference."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import custom_pypto.core
import torch
from torch import Tensor

from benchmarks import fused_steps
from benchmarks.eager import Baseline
from examples.errors import ExampleError
from examples.sparse_decode.check import Closeness, check_step
from examples.sparse_decode.session import Session


@dataclass(frozen=True)
class Step:
    """The results of one decode step."""

    lengths: tuple[int, ...]
    blocks: int
    ours_seconds: float
    eager_seconds: float
    ours: Closeness
    eager: Closeness
    selected: Tensor
    """Positions that the indexer chose, int32 [B, sparse_count], -1 where there are fewer."""


def decode(session: Session, steps: int) -> Iterator[Step]:
    """Decode steps tokens of every sequence; yield after each.

    Each step runs on the same caches three times: by npu_sparse_attention_pto, by the eager
    baseline, by the plugin's reference. All three write the same rows; ours are restored after
    it, so that the next step continues from what our op wrote.

    Raises ExampleError when a step is outside the tolerance.
    """
    ops = torch.ops.custom_pypto
    fused: Callable[..., Tensor] = ops.npu_sparse_attention_pto
    eager = Baseline()
    reference = custom_pypto.core.reference("npu_sparse_attention_pto")
    if reference is None:
        raise ExampleError(
            "npu_sparse_attention_pto: its plugin gives no reference to check against"
        )

    for number in range(steps):
        arguments = session.next_step()
        slots = arguments.cache_index.flatten().long()

        eager_out, eager_seconds = _timed(eager.sparse_attention, arguments)
        out, ours_seconds = _timed(fused, *arguments)
        rows = session.cache.read(slots)
        # The fused op does not return its selection; its steps rewrite the rows in the caches.
        _, selected = fused_steps.steps(arguments)

        expected = reference.function(*arguments)
        expected_rows = session.cache.read(slots)
        session.cache.write(slots, *rows)
        try:
            closeness = check_step(reference, arguments, out, rows, expected, expected_rows)
        except ExampleError as error:
            raise ExampleError(f"step {number + 1} of {steps}: {error}") from error
        yield Step(
            lengths=tuple(arguments.act_seqs.tolist()),
            blocks=session.cache.used_blocks,
            ours_seconds=ours_seconds,
            eager_seconds=eager_seconds,
            ours=closeness,
            eager=Closeness.of(eager_out, expected),
            selected=selected[:, 0, 0],
        )


def _timed(op: Callable[..., Tensor], *arguments: object) -> tuple[Tensor, float]:
    start = time.perf_counter()
    out = op(*arguments)
    return out, time.perf_counter() - start
