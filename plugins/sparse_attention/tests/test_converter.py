"""The converters, against a stand-in for torchair's public functions."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import samples, to_nz
from custom_pypto_sparse_attention.weight_order import NZ_WEIGHTS, declared_for_a_test
from custom_pypto_testing import Graph, GraphTensor

INTEGERS = ("cache_index", "block_table", "act_seqs")

# DeepSeek-V3.2 but for the numbers of tokens and blocks.
SIZES = samples.Sizes(
    lengths=(130, 70),
    hidden=7168,
    query_rank=1536,
    heads=128,
    nope=128,
    latent=512,
    rope=64,
    index_heads=64,
    index_size=128,
    block_size=128,
)


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


def only_shape(data: samples.Data, *shape: int, **_: float) -> torch.Tensor:
    return torch.empty(shape, dtype=data.sizes.dtype, device="meta")


@pytest.fixture(autouse=True)
def draw_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples have shapes alone: the model's weights have 10^8 numbers."""
    monkeypatch.setattr(samples.Data, "normal", only_shape)


def in_graph(call: samples.Arguments) -> dict[str, Any]:
    """A call's arguments as a converter gets them."""
    return {
        name: GraphTensor(name, *each.shape, dtype=each.dtype)
        if isinstance(each, torch.Tensor)
        else each
        for name, each in call.items()
    }


def fused_arguments(sizes: samples.Sizes = SIZES) -> dict[str, Any]:
    return in_graph(samples.fused_arguments(sizes))


def mla_arguments(sizes: samples.Sizes = SIZES) -> dict[str, Any]:
    return in_graph(samples.mla_arguments(sizes))


def attention_arguments(
    sizes: samples.Sizes = SIZES, layout: str = "BSND", **options: Any
) -> dict[str, Any]:
    return in_graph(samples.attention_arguments(sizes, layout=layout)) | options


def with_nz_weights(call: samples.Arguments) -> dict[str, Any]:
    """The call with its weights [N / 16, K, 16]."""
    formed = {name: to_nz(each) for name, each in call.items() if name in NZ_WEIGHTS}
    return in_graph(call | formed)


def test_fused_op_is_one_node_with_its_inputs_in_order(converter: Any, graph: Graph) -> None:
    arguments = fused_arguments()
    with declared_for_a_test():
        assert converter.convert_sparse_attention(**arguments) == "y0"
    inputs = [f"int32({n})" if n in INTEGERS else given for n, given in arguments.items()]
    assert graph.nodes == [("SparseAttentionPto", {"x": inputs}, {})]


def test_fused_op_sees_3d_weights_as_matrices(converter: Any, graph: Graph) -> None:
    arguments = with_nz_weights(samples.fused_arguments(SIZES))
    converter.convert_sparse_attention(**arguments)
    *reshapes, (fused, inputs, _) = graph.nodes
    matrices = fused_arguments()
    assert [(made, given["shape"]) for made, given, _ in reshapes] == [
        ("Reshape", f"int64({list(matrices[name].symsize)})") for name in NZ_WEIGHTS
    ]
    assert fused == "SparseAttentionPto"
    order = list(arguments)
    assert [order[i] for i, given in enumerate(inputs["x"]) if given == "y"] == list(NZ_WEIGHTS)


def test_fused_op_brings_plain_weights_into_nz_order(converter: Any, graph: Graph) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converter.convert_sparse_attention(**fused_arguments())
    made = [(node, inputs.get("shape", inputs.get("perm"))) for node, inputs, _ in graph.nodes[:3]]
    assert made == [
        ("Reshape", "int64([7168, 96, 16])"),
        ("Transpose", "int64([1, 0, 2])"),
        ("Reshape", "int64([7168, 1536])"),
    ]
    assert [node for node, _, _ in graph.nodes[3:]].count("Transpose") == 5
    assert graph.nodes[-1][0] == "SparseAttentionPto"


def test_an_error_in_making_a_node_is_not_taken_for_a_type_that_is_not_registered(
    converter: Any, graph: Graph
) -> None:
    graph.broken = {"SparseAttentionPto", "MlaPrologV3"}
    with declared_for_a_test(), pytest.raises(RuntimeError, match="No node of SparseAttentionPto"):
        converter.convert_sparse_attention(**fused_arguments())
    with pytest.raises(RuntimeError, match="No node of MlaPrologV3"):
        converter.convert_mla_prolog(**mla_arguments())


def test_mla_prolog_returns_what_its_schema_returns(converter: Any, graph: Graph) -> None:
    arguments = mla_arguments()
    outputs = converter.convert_mla_prolog(**arguments)
    assert outputs == ("query", "query_rope", "query_norm")
    assert {output.op_type for output in outputs} == {"MlaPrologV3"}
    assert [tuple(output.meta.shape) for output in outputs] == [
        (2, 1, 128, 512),
        (2, 1, 128, 64),
        (2, 1, 1536),
    ]
    ((op_type, inputs, attrs),) = graph.nodes
    assert op_type == "MlaPrologV3"
    assert inputs["cache_index"] == "int64(cache_index)"
    assert [inputs[name] for name in ("rope_sin", "rope_cos", "kv_cache", "kr_cache")] == [
        arguments[name] for name in ("sin", "cos", "kv_cache", "kr_cache")
    ]
    assert attrs["query_norm_flag"] is True


def is_composed(converter: Any, graph: Graph, arguments: dict[str, Any]) -> bool:
    """Whether npu_mla_prolog becomes its steps, and not the stock type."""
    graph.nodes.clear()
    converter.convert_mla_prolog(**arguments)
    assert graph.nodes
    return not graph.of_type("MlaPrologV3")


def test_mla_prolog_of_an_older_cann_is_made_of_its_steps(converter: Any, graph: Graph) -> None:
    assert not is_composed(converter, graph, mla_arguments())
    inputs, outputs, attributes = graph.definitions["MlaPrologV3"]
    older = (inputs[:-1], outputs, [*attributes, ("k_nope_clip_alpha", "VT_FLOAT")])
    graph.definitions["MlaPrologV3"] = older
    assert is_composed(converter, graph, mla_arguments())


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden": 1024},
        {"query_rank": 1024},
        {"heads": 3},
        {"nope": 64},
        {"latent": 256},
        {"rope": 32},
        {"block_size": 100},
        {"dtype": torch.float16},
    ],
)
def test_mla_prolog_of_other_sizes_does_not_fit_the_stock_type(
    converter: Any, graph: Graph, changed: dict[str, Any]
) -> None:
    assert is_composed(converter, graph, mla_arguments(replace(SIZES, **changed)))


@pytest.mark.parametrize("name", ["gamma_cq", "gamma_ckv", "sin", "cos"])
def test_mla_prolog_with_fp32_parameters_does_not_fit_the_stock_type(
    converter: Any, graph: Graph, name: str
) -> None:
    arguments = mla_arguments()
    arguments[name].set_meta(arguments[name].meta.float())
    assert is_composed(converter, graph, arguments)


def test_mla_prolog_with_nz_weights_does_not_fit_the_stock_type(
    converter: Any, graph: Graph
) -> None:
    assert is_composed(converter, graph, with_nz_weights(samples.mla_arguments(SIZES)))
    with declared_for_a_test():
        assert is_composed(converter, graph, mla_arguments())


@pytest.mark.parametrize("layout", ["TND", "BSND"])
def test_attention_passes_every_attribute(converter: Any, graph: Graph, layout: str) -> None:
    arguments = attention_arguments(layout=layout, sparse_mode=0, scale=0.5)
    outputs = converter.convert_sparse_flash_attention(**arguments)
    assert outputs == ("attention_out", "softmax_max")
    (op_type, inputs, attrs) = graph.nodes[-1]
    assert op_type == "SparseFlashAttention"
    assert inputs["key"] == inputs["value"] == arguments["kv_cache"]
    assert inputs["block_table"] == "int32(block_table)"
    assert attrs["layout_query"] == layout
    assert (attrs["scale_value"], attrs["sparse_mode"], attrs["attention_mode"]) == (0.5, 0, 2)


def test_attention_puts_unused_indices_last(converter: Any, graph: Graph) -> None:
    converter.convert_sparse_flash_attention(**attention_arguments())
    (sort, inputs, attrs), (_, attended, _) = graph.nodes
    assert (sort, inputs) == ("Sort", {"x": "int32(sparse_indices)"})
    assert (attrs["axis"], attrs["descending"]) == (-1, True)
    assert attended["sparse_indices"] == "y1"


def test_attention_clamps_the_query_lengths_of_a_4_d_query(converter: Any, graph: Graph) -> None:
    lengths = GraphTensor("actual_seq_lengths_query", 2, dtype=torch.int32)
    arguments = attention_arguments(replace(SIZES, tokens=3), actual_seq_lengths_query=lengths)
    converter.convert_sparse_flash_attention(**arguments)
    assert ("Minimum", {"x1": lengths, "x2": "int32([3])"}, {}) in graph.nodes
    assert graph.nodes[-1][1]["actual_seq_lengths_query"] == "int32(y)"


def test_attention_passes_prefix_sums_of_a_3_d_query(converter: Any, graph: Graph) -> None:
    converter.convert_sparse_flash_attention(**attention_arguments(layout="TND"))
    assert [node[0] for node in graph.nodes] == ["Sort", "SparseFlashAttention"]
    assert graph.nodes[-1][1]["actual_seq_lengths_query"] == "int32(actual_seq_lengths_query)"


# Sizes that SparseFlashAttention does not take, and the argument of the fused op that has them.
LIMITS: list[tuple[dict[str, Any], str, str]] = [
    ({"heads": 3}, "w_uk", "must have 1, 2, 4, 8, 16, 32, 64 or 128 heads, got 3"),
    ({"heads": 256}, "w_uk", "heads, got 256"),
    ({"dtype": torch.float32}, "kv_cache", "must be bfloat16 or float16, got float32"),
    ({"latent": 256}, "kv_cache", "must have rows of size 512, got 256"),
    ({"rope": 32}, "kr_cache", "must have rows of size 64, got 32"),
    ({"block_size": 100}, "kv_cache", "multiple of 16 and at most 1024, got 100"),
]


@pytest.mark.parametrize(("changed", "argument", "message"), LIMITS)
def test_attention_of_other_sizes_is_refused(
    converter: Any, graph: Graph, changed: dict[str, Any], argument: str, message: str
) -> None:
    arguments = attention_arguments(replace(SIZES, **changed))
    with pytest.raises(RuntimeError) as caught:
        converter.convert_sparse_flash_attention(**arguments)
    name = "query" if argument == "w_uk" else argument
    assert str(caught.value).startswith(f"npu_sparse_flash_attention: argument '{name}' ")
    assert message in str(caught.value)
    assert "SparseFlashAttention" in str(caught.value)
    assert not graph.nodes


@pytest.mark.parametrize(
    ("changed", "argument", "message"),
    [
        *LIMITS,
        ({"index_heads": 65}, "w_idx_proj", "must have at most 64 columns"),
        ({"index_heads": 80}, "w_idx_proj", "heads, got 80"),
        ({"index_size": 64}, "index_k_cache", "must have rows of size 128, got 64"),
    ],
)
def test_fused_op_refuses_what_any_piece_does_not_take_before_it_makes_a_node(
    converter: Any, graph: Graph, changed: dict[str, Any], argument: str, message: str
) -> None:
    graph.registered.remove("SparseAttentionPto")
    with pytest.raises(RuntimeError) as caught:
        converter.convert_sparse_attention(**fused_arguments(replace(SIZES, **changed)))
    assert str(caught.value).startswith(f"npu_sparse_attention_pto: argument '{argument}' ")
    assert message in str(caught.value)
    assert "aclnnSparseAttentionPto" in str(caught.value)
    assert not graph.nodes


@pytest.mark.parametrize("changed", [{"dtype": torch.float32}, {"index_size": 72}])
def test_fused_op_with_weights_that_nz_order_cannot_hold_is_made_of_its_pieces(
    converter: Any, graph: Graph, changed: dict[str, Any]
) -> None:
    with pytest.raises(RuntimeError, match="a limit of aclnn"):
        converter.convert_sparse_attention(**fused_arguments(replace(SIZES, **changed)))
    assert not graph.nodes


def test_attention_in_a_graph_refuses_log_sum_exp(converter: Any) -> None:
    with pytest.raises(RuntimeError, match="argument 'return_softmax_lse' must be False"):
        converter.convert_sparse_flash_attention(**attention_arguments(return_softmax_lse=True))


def test_converters_take_positional_arguments_too(converter: Any, graph: Graph) -> None:
    arguments = fused_arguments()
    with declared_for_a_test():
        converter.convert_sparse_attention(*arguments.values(), meta_outputs=None)
    assert graph.nodes[0][1]["x"][-1] == arguments["index_k_cache"]
