"""What the converters refuse or compose, against a stand-in for torchair's public functions.

tests/npu/test_graph.py runs the nodes of every sample in graphs of torchair itself.
"""

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import samples, to_nz
from custom_pypto_sparse_attention.weight_order import NZ_WEIGHTS, declared_for_a_test
from custom_pypto_testing import Graph, GraphTensor

SIZES = samples.DEEPSEEK_V32
MLA_PARAMETERS = ("gamma_cq", "gamma_ckv", "sin", "cos")


@pytest.fixture
def converter(torchair_graph: Graph) -> Any:
    del torchair_graph  # it is what the converter shall see
    return importlib.import_module("custom_pypto_sparse_attention.converter")


@pytest.fixture
def graph(torchair_graph: Graph, converter: Any) -> Graph:
    torchair_graph.registered = {"SparseAttentionPto", "MlaPrologV3", "SparseFlashAttention"}
    torchair_graph.definitions["MlaPrologV3"] = (
        [(name, "required") for name in converter._MLA_PROLOG_INPUTS],
        [(name, "required") for name in converter._MLA_PROLOG_OUTPUTS],
        [(name, "VT_ANY") for name in converter._MLA_PROLOG_ATTRIBUTES],
    )
    return torchair_graph


@pytest.fixture(autouse=True)
def draw_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples have shapes alone: the model's weights have 10^8 numbers."""
    monkeypatch.setattr(
        samples.Data,
        "normal",
        lambda data, *shape, **_: torch.empty(shape, dtype=data.sizes.dtype, device="meta"),
    )


def in_graph(call: samples.Arguments) -> dict[str, Any]:
    """A call's arguments as a converter gets them."""
    return {
        name: GraphTensor(name, *each.shape, dtype=each.dtype)
        if isinstance(each, torch.Tensor)
        else each
        for name, each in call.items()
    }


def mla_arguments(sizes: samples.Sizes = SIZES) -> dict[str, Any]:
    return in_graph(samples.mla_arguments(sizes))


def mla_with_fp32(name: str) -> dict[str, Any]:
    arguments = mla_arguments()
    arguments[name].set_meta(arguments[name].meta.float())
    return arguments


def mla_with_nz_weights() -> dict[str, Any]:
    """The call with its weights [N / 16, K, 16]."""
    call = samples.mla_arguments(SIZES)
    return in_graph(call | {name: to_nz(call[name]) for name in NZ_WEIGHTS if name in call})


OTHER_SIZES: list[dict[str, Any]] = [
    *({"hidden": 1024}, {"query_rank": 1024}, {"heads": 3}, {"nope": 64}, {"latent": 256}),
    *({"rope": 32}, {"block_size": 100}, {"dtype": torch.float16}),
]
UNFIT: dict[str, Callable[[], dict[str, Any]]] = {
    **{str(each): partial(mla_arguments, replace(SIZES, **each)) for each in OTHER_SIZES},
    **{f"fp32 {name}": partial(mla_with_fp32, name) for name in MLA_PARAMETERS},
    "nz": mla_with_nz_weights,
    "declared nz": mla_arguments,
}


@pytest.mark.parametrize("what", UNFIT)
def test_mla_prolog_that_does_not_fit_the_stock_type_becomes_its_steps(
    converter: Any, graph: Graph, what: str
) -> None:
    with declared_for_a_test(what == "declared nz"):
        converter.convert_mla_prolog(**UNFIT[what]())
    assert graph.nodes
    assert not graph.of_type("MlaPrologV3")


@pytest.mark.parametrize("changed", [{"dtype": torch.float32}, {"index_size": 72}])
def test_fused_op_with_weights_that_nz_order_cannot_hold_is_made_of_its_pieces(
    converter: Any, graph: Graph, changed: dict[str, Any]
) -> None:
    arguments = in_graph(samples.fused_arguments(replace(SIZES, **changed)))
    with pytest.raises(RuntimeError, match="a limit of aclnn"):
        converter.convert_sparse_attention(**arguments)
    assert not graph.nodes
