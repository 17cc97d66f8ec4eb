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
from custom_pypto_sparse_attention import declare_nz_weights, samples, to_nz
from custom_pypto_sparse_attention.weight_order import declared_for_a_test, weights_are_nz
from torch import Tensor

Arguments = tuple[Tensor, ...]
SIZES = samples.FRACTAL_SIZES
# Each op's arguments, and which of them are weights that NZ order is for.
OPS: dict[str, tuple[Callable[..., Arguments], tuple[int, ...]]] = {
    "npu_sparse_attention_pto": (samples.fused_arguments, (1, 2, 4, 14, 15, 16)),
    "npu_mla_prolog": (samples.mla_arguments, (1, 2, 4)),
    "npu_indexer_prolog": (samples.indexer_arguments, (2, 3, 4)),
}


@pytest.fixture(autouse=True)
def plain() -> Iterator[None]:
    """Weights are plain, whatever the environment of the tests says."""
    with declared_for_a_test(False):
        yield


def nz_bytes(weight: Tensor) -> Tensor:
    """A weight as the published script gives it: [K, N], with its bytes in NZ order."""
    return to_nz(weight).view(weight.shape)


def arguments(op: str, form: Callable[[Tensor], Tensor], dtype: torch.dtype) -> Arguments:
    make, weights = OPS[op]
    made = make(replace(SIZES, dtype=dtype))
    return tuple(form(each) if index in weights else each for index, each in enumerate(made))


def results(op: str, given: Arguments) -> list[Tensor]:
    """What an op returns, and all of its arguments after it: caches among them."""
    returned: Any = getattr(torch.ops.custom_pypto, op)(*given)
    return [*(returned if isinstance(returned, tuple) else (returned,)), *given]


def same(op: str, left: list[Tensor], right: list[Tensor]) -> bool:
    weights = {len(left) - len(OPS[op][0](SIZES)) + index for index in OPS[op][1]}
    pairs = enumerate(zip(left, right, strict=True))
    return all(torch.equal(one, other) for index, (one, other) in pairs if index not in weights)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", OPS)
def test_declared_weights_give_the_bits_of_plain_ones(op: str, dtype: torch.dtype) -> None:
    expected = results(op, arguments(op, Tensor.clone, dtype))
    with declared_for_a_test():
        assert same(op, results(op, arguments(op, nz_bytes, dtype)), expected)


@pytest.mark.parametrize("op", OPS)
def test_weights_are_plain_where_nothing_is_declared(op: str) -> None:
    expected = results(op, arguments(op, Tensor.clone, torch.bfloat16))
    assert not same(op, results(op, arguments(op, nz_bytes, torch.bfloat16)), expected)


@pytest.mark.parametrize("op", OPS)
def test_a_declaration_does_not_concern_3d_weights(op: str) -> None:
    expected = results(op, arguments(op, to_nz, torch.bfloat16))
    with declared_for_a_test():
        assert same(op, results(op, arguments(op, to_nz, torch.bfloat16)), expected)


def test_a_declaration_holds_until_it_is_taken_back() -> None:
    declare_nz_weights()
    assert weights_are_nz()
    declare_nz_weights(False)
    assert not weights_are_nz()


def test_a_compiled_op_looks_at_each_call() -> None:
    op = "npu_mla_prolog"
    expected = results(op, arguments(op, Tensor.clone, torch.bfloat16))
    compiled = torch.compile(lambda *given: results(op, given), backend="aot_eager")
    assert same(op, compiled(*arguments(op, Tensor.clone, torch.bfloat16)), expected)
    with declared_for_a_test():
        assert same(op, compiled(*arguments(op, nz_bytes, torch.bfloat16)), expected)


# A weight of each op, and sizes of which it has columns that fill no tile.
BROKEN_TILES = {
    "npu_mla_prolog": ("w_dq", replace(SIZES, query_rank=24)),
    "npu_indexer_prolog": ("w_idx_qb", replace(SIZES, index_heads=1, index_size=72)),
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    "what", ["have a multiple of 16 columns", "be contiguous", "be bfloat16 or float16"]
)
@pytest.mark.parametrize("op", BROKEN_TILES)
def test_declared_weights_that_nz_order_cannot_hold_are_refused(
    op: str, what: str, device: str
) -> None:
    make, _ = OPS[op]
    function = getattr(torch.ops.custom_pypto, op)
    names = [argument.name for argument in function.default._schema.arguments]
    name, broken = BROKEN_TILES[op]
    given = dict(zip(names, make(broken if "columns" in what else SIZES), strict=True))
    if "contiguous" in what:
        given[name] = given[name].t().contiguous().t()
    if "float" in what:
        given = {n: t.float() if t.is_floating_point() else t for n, t in given.items()}
    message = f"{op}: argument '{name}' must {what} where 2-D weights are declared to hold fractal"
    with declared_for_a_test(), pytest.raises(RuntimeError, match=re.escape(message)) as caught:
        function(**{n: t.to(device) for n, t in given.items()})
    assert "CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS=nz" in str(caught.value)
    assert str(list(given[name].stride())) in str(caught.value)


READS = """
import custom_pypto.core
from custom_pypto_sparse_attention import declare_nz_weights, weight_order
print(weight_order.weights_are_nz())
"""


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
    ("value", "is_nz"), [("nz", True), ("plain", False), ("", False), (None, False)]
)
def test_the_variable_declares_for_the_process(value: str | None, is_nz: bool) -> None:
    assert run(value, READS).stdout.split() == [str(is_nz)]


def test_python_overrides_the_variable_until_it_declares_nothing() -> None:
    code = READS + (
        "declare_nz_weights(False)\nprint(weight_order.weights_are_nz())\n"
        "declare_nz_weights(None)\nprint(weight_order.weights_are_nz())\n"
    )
    assert run("nz", code).stdout.split() == ["True", "False", "True"]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_another_value_of_the_variable_is_refused_by_name(device: str) -> None:
    code = """
import torch, custom_pypto.core
from custom_pypto_sparse_attention import samples
tensors = samples.mla_arguments(samples.FRACTAL_SIZES)
torch.ops.custom_pypto.npu_mla_prolog(*(tensor.to(DEVICE) for tensor in tensors))
"""
    refused = run("NZ", code.replace("DEVICE", repr(device)))
    assert refused.returncode == 1
    reason = (
        "RuntimeError: CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS='NZ' is no order of weights; set it"
    )
    assert reason in refused.stderr


def test_the_variable_is_not_read_where_python_has_declared() -> None:
    declares = "from custom_pypto_sparse_attention import declare_nz_weights as d; d()\n"
    done = run("NZ", declares + READS)
    assert done.stdout.split() == ["True"]


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
