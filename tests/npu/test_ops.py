"""Every op of the plugins on an NPU against the CPU, by the ops' own samples."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import process
import pytest

OPS = (
    "add_custom",
    "add_custom_backward",
    "npu_indexer_prolog",
    "npu_lightning_indexer_pto",
    "npu_mla_prolog",
    "npu_sparse_attention_pto",
    "npu_sparse_flash_attention",
)

COMPARE = """
def moved(value):
    return value.npu() if isinstance(value, torch.Tensor) else value
def cloned(value):
    return value.clone() if isinstance(value, torch.Tensor) else value
def results(returned):
    return returned if isinstance(returned, tuple) else (returned,)
def compare(name, sample):
    op, reference = getattr(ops, name), core.reference(name)
    args, kwargs = [cloned(each) for each in sample.args], dict(sample.kwargs)
    on_npu = [moved(each) for each in args]
    got = op(*on_npu, **{key: moved(each) for key, each in kwargs.items()})
    want = op(*args, **kwargs)
    for left, right in zip(results(got), results(want), strict=True):
        assert left.device.type == "npu" and left.dtype == right.dtype and left.shape == right.shape
        torch.testing.assert_close(left.cpu(), right, rtol=0.02, atol=0.02, equal_nan=True)
    for left, right in zip(on_npu, args, strict=True):
        if isinstance(right, torch.Tensor):
            torch.testing.assert_close(left.cpu(), right, rtol=0.02, atol=0.02)
outcomes = {}
for record in core.ops():
    for sample in core.samples(record.name, "npu"):
        cpu = [each.cpu() if isinstance(each, torch.Tensor) else each for each in sample.args]
        kwargs = {key: each.cpu() if isinstance(each, torch.Tensor) else each
                  for key, each in sample.kwargs.items()}
        try:
            compare(record.name, core.SampleInput(tuple(cpu), kwargs, sample.name))
            outcome = ""
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        outcomes.setdefault(record.name, {})[sample.name] = outcome
give({"outcomes": outcomes, "live": live()})
"""


@functools.cache
def outcomes(entry: Path, queue: str) -> dict[str, dict[str, dict[str, str]]]:
    with tempfile.TemporaryDirectory() as folder:
        variables = {"ASCEND_CUSTOM_OPP_PATH": str(entry), "TASK_QUEUE_ENABLE": queue}
        ended = process.run(COMPARE, Path(folder), **variables)
    assert ended.returncode == 0, ended.output
    found: dict[str, dict[str, dict[str, str]]] = json.loads(ended.given[0])
    return found


@pytest.mark.parametrize("queue", ["0", "1", "2"])
@pytest.mark.parametrize("op", OPS)
def test_op_by_stock_kernels_equals_cpu(opp: Callable[..., Path], op: str, queue: str) -> None:
    found = outcomes(opp("stock"), queue)["outcomes"][op]
    assert found
    assert {name: text for name, text in found.items() if text} == {}


@pytest.mark.parametrize("op", OPS)
def test_op_by_custom_kernels_equals_cpu(opp: Callable[..., Path], op: str) -> None:
    found = outcomes(opp("custom", "stock"), "1")["outcomes"][op]
    assert found
    assert {name: text for name, text in found.items() if text} == {}


@pytest.mark.parametrize("queue", ["0", "1", "2"])
def test_nothing_is_left_of_the_launches(opp: Callable[..., Path], queue: str) -> None:
    assert not any(outcomes(opp("stock"), queue)["live"].values())


def test_every_op_is_tested(opp: Callable[..., Path]) -> None:
    assert tuple(sorted(outcomes(opp("stock"), "1")["outcomes"])) == OPS
