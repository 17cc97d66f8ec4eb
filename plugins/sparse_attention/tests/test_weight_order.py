"""2-D weights that are declared to hold fractal NZ bytes, and plain ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto.core.namespace import contract_of
from custom_pypto_sparse_attention import declare_nz_weights, samples, to_nz
from custom_pypto_sparse_attention.weight_order import (
    NZ_WEIGHTS,
    declared_for_a_test,
    weights_are_nz,
)
from refusals import assert_refused
from torch import Tensor

Arguments = dict[str, Tensor]
SIZES = samples.FRACTAL_SIZES
OPS: dict[str, Callable[[samples.Sizes], Arguments]] = {
    "npu_sparse_attention_pto": samples.fused_arguments,
    "npu_mla_prolog": samples.mla_arguments,
    "npu_indexer_prolog": samples.indexer_arguments,
}


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Weights are plain, whatever the environment of the tests says."""
    with declared_for_a_test(False):
        yield


def nz_bytes(weight: Tensor) -> Tensor:
    """A weight as the published script gives it: [K, N], with its bytes in NZ order."""
    return to_nz(weight).view(weight.shape)


def arguments(
    op: str, form: Callable[[Tensor], Tensor], dtype: torch.dtype = torch.bfloat16
) -> Arguments:
    made = OPS[op](replace(SIZES, dtype=dtype))
    return {name: form(each) if name in NZ_WEIGHTS else each for name, each in made.items()}


def results(op: str, given: Arguments) -> list[Tensor]:
    """The results of an op, and its arguments after it without the weights."""
    returned: Any = getattr(torch.ops.custom_pypto, op)(**given)
    others = [each for name, each in given.items() if name not in NZ_WEIGHTS]
    return [*(returned if isinstance(returned, tuple) else (returned,)), *others]


def test_nz_weights_are_those_with_the_template_weight() -> None:
    assert contract_of("npu_sparse_attention_pto").templates["weight"] == NZ_WEIGHTS


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", OPS)
def test_declared_weights_give_the_bits_of_plain_ones(op: str, dtype: torch.dtype) -> None:
    expected = results(op, arguments(op, Tensor.clone, dtype))
    with declared_for_a_test():
        assert same(results(op, arguments(op, nz_bytes, dtype)), expected)


@pytest.mark.parametrize("op", OPS)
def test_weights_are_plain_where_nothing_is_declared(op: str) -> None:
    expected = results(op, arguments(op, Tensor.clone))
    assert not same(results(op, arguments(op, nz_bytes)), expected)


@pytest.mark.parametrize("op", OPS)
def test_a_declaration_does_not_concern_3d_weights(op: str) -> None:
    expected = results(op, arguments(op, to_nz))
    with declared_for_a_test():
        assert same(results(op, arguments(op, to_nz)), expected)


@pytest.mark.parametrize("declared", [-5, 2, 1.0, "nz", torch.tensor(True)], ids=repr)
def test_a_declaration_is_a_bool_or_none(declared: Any) -> None:
    before = weights_are_nz()
    with pytest.raises(TypeError, match="'declared' must be True, False or None, got "):
        declare_nz_weights(declared)
    assert weights_are_nz() == before


def test_a_declaration_holds_until_it_is_taken_back() -> None:
    declare_nz_weights()
    assert weights_are_nz()
    declare_nz_weights(False)
    assert not weights_are_nz()


def test_a_compiled_op_looks_at_each_call() -> None:
    op = "npu_mla_prolog"
    expected = results(op, arguments(op, Tensor.clone))
    compiled = torch.compile(lambda given: results(op, given), backend="aot_eager")
    assert same(compiled(arguments(op, Tensor.clone)), expected)
    with declared_for_a_test():
        assert same(compiled(arguments(op, nz_bytes)), expected)


# A weight of each op, and sizes for which its last tile is not full.
BROKEN_TILES = {
    "npu_mla_prolog": ("w_dq", replace(SIZES, query_rank=24)),
    "npu_indexer_prolog": ("w_idx_qb", replace(SIZES, index_heads=1, index_size=72)),
}


@pytest.mark.parametrize(
    "what", ["have a multiple of 16 columns", "be contiguous", "be bfloat16 or float16"]
)
@pytest.mark.parametrize("op", BROKEN_TILES)
def test_declared_weights_that_nz_order_cannot_hold_are_refused(op: str, what: str) -> None:
    name, broken = BROKEN_TILES[op]
    given = OPS[op](broken if "columns" in what else SIZES)
    if "contiguous" in what:
        given[name] = given[name].t().contiguous().t()
    if "float" in what:
        given = {n: t.float() if t.is_floating_point() else t for n, t in given.items()}
    dtype = str(given[name].dtype).removeprefix("torch.")
    text = (
        f"must {what} where 2-D weights are declared to hold fractal NZ bytes"
        " (CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS=nz or declare_nz_weights()), got"
        f" {dtype}{list(given[name].shape)} with strides {list(given[name].stride())}"
    )
    with declared_for_a_test():
        assert_refused(op, given, name, text)


def run(value: str | None, code: str) -> subprocess.CompletedProcess[str]:
    """A process with the variable set to a value; None: not set."""
    environment = {**os.environ}
    environment.pop("CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS", None)
    if value is not None:
        environment["CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS"] = value
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("value", "declared", "are_nz"),
    [
        ("nz", [], [True]),
        ("plain", [], [False]),
        ("", [], [False]),
        (None, [], [False]),
        # Python overrides the variable until it declares nothing.
        ("nz", [False, None], [True, False, True]),
    ],
)
def test_the_variable_declares_for_the_process(
    value: str | None, declared: list[bool | None], are_nz: list[bool]
) -> None:
    code = f"""
import custom_pypto.core
from custom_pypto_sparse_attention.weight_order import declare_nz_weights, weights_are_nz
print(weights_are_nz())
for declared in {declared}:
    declare_nz_weights(declared)
    print(weights_are_nz())
"""
    assert run(value, code).stdout.split() == [*map(str, are_nz)]


def test_the_variable_is_not_read_where_python_has_declared() -> None:
    code = """
import custom_pypto.core
from custom_pypto_sparse_attention.weight_order import declare_nz_weights, weights_are_nz
declare_nz_weights()
print(weights_are_nz())
"""
    assert run("NZ", code).stdout.split() == ["True"]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_another_value_of_the_variable_is_refused_by_name(device: str) -> None:
    code = """
import torch, custom_pypto.core
from custom_pypto_sparse_attention import samples
tensors = samples.mla_arguments(samples.FRACTAL_SIZES)
torch.ops.custom_pypto.npu_mla_prolog(*(each.to(DEVICE) for each in tensors.values()))
"""
    refused = run("NZ", code.replace("DEVICE", repr(device)))
    assert refused.returncode == 1
    reason = (
        "RuntimeError: CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS='NZ' is no order of weights; set it"
    )
    assert reason in refused.stderr


def test_nz_order_has_tiles_of_16_columns() -> None:
    weight = torch.arange(5 * 32).view(5, 32).to(torch.float16)
    made = to_nz(weight)
    assert made.shape == (2, 5, 16)
    assert made.is_contiguous()
    assert torch.equal(made[1, 3], weight[3, 16:])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.zeros(4, 8, dtype=torch.bfloat16), "must have a multiple of 16 columns, got 8"),
        (torch.zeros(4, 16), "of bfloat16 or float16, got torch.float32 [4, 16]"),
        (torch.zeros(4, 16, dtype=torch.int16), "of bfloat16 or float16, got torch.int16"),
        (torch.zeros(1, 4, 16, dtype=torch.bfloat16), "must be a 2-D matrix"),
    ],
)
def test_what_nz_order_cannot_hold_is_refused(weight: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        to_nz(weight)
