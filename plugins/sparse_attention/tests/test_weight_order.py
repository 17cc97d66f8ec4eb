"""2-D weights that are declared to hold fractal NZ bytes, and plain ones."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto.core import contract
from custom_pypto_sparse_attention import declare_nz_weights, samples, to_nz
from custom_pypto_sparse_attention.weight_order import (
    NZ_WEIGHTS,
    declared_for_a_test,
    weights_are_nz,
)
from programs import run_python
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
    assert contract("npu_sparse_attention_pto").templates["weight"] == NZ_WEIGHTS


def same(left: list[Tensor], right: list[Tensor]) -> bool:
    return all(torch.equal(one, other) for one, other in zip(left, right, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", OPS)
def test_2d_weights_hold_nz_bytes_where_that_is_declared(op: str, dtype: torch.dtype) -> None:
    """3-D weights hold them in any case."""
    expected = results(op, arguments(op, Tensor.clone, dtype))
    assert not same(results(op, arguments(op, nz_bytes, dtype)), expected)
    assert same(results(op, arguments(op, to_nz, dtype)), expected)
    with declared_for_a_test():
        assert same(results(op, arguments(op, nz_bytes, dtype)), expected)
        assert same(results(op, arguments(op, to_nz, dtype)), expected)


@pytest.mark.parametrize("declared", [-5, 2, 1.0, "nz", torch.tensor(True)], ids=repr)
def test_a_declaration_is_a_bool_or_none(declared: Any) -> None:
    before = weights_are_nz()
    with pytest.raises(TypeError, match="'declared' must be True, False or None, got "):
        declare_nz_weights(declared)
    assert weights_are_nz() == before


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


VARIABLE = "CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS"
# The variable is read once in a process, and imports take seconds: hence a fork for each case.
FORKS = """
import os, sys
import torch, custom_pypto.core
from custom_pypto_sparse_attention import samples
from custom_pypto_sparse_attention.weight_order import declare_nz_weights, weights_are_nz

def declare(*declared):
    return [declare_nz_weights(each) or weights_are_nz() for each in declared]

def call(device):
    tensors = samples.mla_arguments(samples.FRACTAL_SIZES)
    torch.ops.custom_pypto.npu_mla_prolog(*(each.to(device) for each in tensors.values()))

for value, expression in CASES:
    if os.fork() == 0:
        os.environ[VARIABLE] = value
        try:
            print(eval(expression), flush=True)
        except RuntimeError as error:
            print(str(error).partition(chr(10))[0], flush=True)
        os._exit(0)
    os.wait()
"""
# By the variable's value and what a process with it does: its result.
PROCESSES: dict[tuple[str, str], str] = {
    ("nz", "weights_are_nz()"): "True",
    ("plain", "weights_are_nz()"): "False",
    ("", "weights_are_nz()"): "False",
    # Python overrides the variable until it declares nothing.
    ("nz", "declare(False, None)"): "[False, True]",
    ("plain", "declare_nz_weights() or weights_are_nz()"): "True",
    # The wrong value is not read.
    ("NZ", "declare(True)"): "[True]",
    ("NZ", "call('cpu')"): f"{VARIABLE}='NZ' is no order of weights; set it",
    ("NZ", "call('meta')"): f"{VARIABLE}='NZ' is no order of weights; set it",
}


def test_the_variable_declares_for_the_process_unless_its_value_is_wrong() -> None:
    code = f"CASES, VARIABLE = {[*PROCESSES]}, {VARIABLE!r}\n{FORKS}"
    found_lines = run_python("-c", code).stdout.splitlines()
    for (process, wanted), found in zip(PROCESSES.items(), found_lines, strict=True):
        assert found.startswith(wanted), process


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
