"""The baselines compute what the ops compute; else a comparison of times would mean nothing."""

from __future__ import annotations

import dataclasses
from functools import partial

import torch
from custom_pypto.core import Reference, reference

from benchmarks.cases import all_cases
from benchmarks.eager import Baseline, FusedArguments
from benchmarks.timing import interleaved
from examples.sparse_decode import sizes
from examples.sparse_decode.session import Session
from examples.sparse_decode.text import Text


def _step() -> FusedArguments:
    size = dataclasses.replace(sizes.SMALL, contexts=(2300, 130), steps=1)
    session = Session(size, Text.python_documentation())
    for _ in session.prefill():
        pass
    wide = (value.float() if value.is_floating_point() else value for value in session.next_step())
    return FusedArguments(*wide)


def _reference() -> Reference:
    found = reference("npu_sparse_attention_pto")
    assert found is not None
    return found


def test_eager_baseline_computes_the_fused_op() -> None:
    arguments = _step()
    expected = _reference().function(*(value.clone() for value in arguments))
    out = Baseline().sparse_attention(arguments)
    assert (out - expected).norm() < 1e-4 * expected.norm()


def test_eager_baseline_writes_the_caches() -> None:
    arguments = _step()
    theirs = FusedArguments(*(value.clone() for value in arguments))
    _reference().function(*theirs)
    Baseline().sparse_attention(arguments)
    for name in ("kv_cache", "kr_cache", "index_k_cache"):
        torch.testing.assert_close(
            getattr(arguments, name), getattr(theirs, name), rtol=1e-4, atol=1e-5
        )


def test_every_op_of_the_benchmark_has_a_quick_case() -> None:
    ops = {case.op for case in all_cases()}
    assert ops == {case.op for case in all_cases() if case.quick}


def test_interleaved_gives_each_call_as_many_rounds() -> None:
    rounds = {"a": 0, "b": 0}

    def call(name: str) -> None:
        rounds[name] += 1
        torch.ones(512, 512).sum()

    interleaved({name: partial(call, name) for name in rounds}, least=3, most=3, budget=0)
    assert min(rounds.values()) >= 3
