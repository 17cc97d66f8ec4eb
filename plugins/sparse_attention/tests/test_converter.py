"""The converters, against a stand-in for torchair's public functions."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention.weight_order import declared_for_a_test

MODULES = (
    "custom_pypto_sparse_attention.converter",
    "custom_pypto_sparse_attention.ge_steps",
    "custom_pypto_sparse_attention.limits",
    "custom_pypto_lightning_indexer.converter",
)
FUSED = torch.ops.custom_pypto.npu_sparse_attention_pto.default._schema
MLA = torch.ops.custom_pypto.npu_mla_prolog.default._schema
INDEXER = torch.ops.custom_pypto.npu_indexer_prolog.default._schema
ATTENTION = torch.ops.custom_pypto.npu_sparse_flash_attention.default._schema
WEIGHTS = ("w_dq", "w_uq_qr", "w_dkv_kr", "w_idx_qb", "w_idx_k", "w_idx_proj")


MLA_PROLOG = (
    [
        *((name, "required") for name in (
            "token_x", "weight_dq", "weight_uq_qr", "weight_uk", "weight_dkv_kr",
            "rmsnorm_gamma_cq", "rmsnorm_gamma_ckv", "rope_sin", "rope_cos", "kv_cache",
            "kr_cache",
        )),
        *((name, "optional") for name in (
            "cache_index", "dequant_scale_x", "dequant_scale_w_dq", "dequant_scale_w_uq_qr",
            "dequant_scale_w_dkv_kr", "quant_scale_ckv", "quant_scale_ckr", "smooth_scales_cq",
            "actual_seq_len", "k_nope_clip_alpha",
        )),
    ],
    [(name, "required") for name in (
        "query", "query_rope", "kv_cache", "kr_cache", "dequant_scale_q_nope", "query_norm",
        "dequant_scale_q_norm",
    )],
    [
        ("rmsnorm_epsilon_cq", "VT_FLOAT"), ("rmsnorm_epsilon_ckv", "VT_FLOAT"),
        ("cache_mode", "VT_STRING"), ("query_norm_flag", "VT_BOOL"),
        ("weight_quant_mode", "VT_INT"), ("kv_cache_quant_mode", "VT_INT"),
        ("query_quant_mode", "VT_INT"), ("ckvkr_repo_mode", "VT_INT"),
        ("quant_scale_repo_mode", "VT_INT"), ("tile_size", "VT_INT"), ("qc_qr_scale", "VT_FLOAT"),
        ("kc_scale", "VT_FLOAT"),
    ],
)  # fmt: skip
"""Inputs, outputs and attributes of MlaPrologV3 since CANN 8.5.0.alpha003."""


class Graph:
    """Records the nodes made, and knows which op types are registered."""

    def __init__(self) -> None:
        self.registered = {"SparseAttentionPto", "MlaPrologV3", "SparseFlashAttention"}
        self.mla_prolog: tuple[list[Any], list[Any], list[Any]] = MLA_PROLOG
        self.nodes: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def get_registered_ir_def(self, op_type: str) -> tuple[str, list[Any], list[Any], list[Any]]:
        if op_type not in self.registered:
            return ("FAILED", [], [], [])
        return ("SUCCESS", *(self.mla_prolog if op_type == "MlaPrologV3" else ([], [], [])))

    def custom_op(
        self,
        op_type: str,
        *,
        inputs: dict[str, Any],
        outputs: list[Any],
        attrs: dict[str, Any] | None = None,
    ) -> Any:
        self.nodes.append((op_type, inputs, attrs or {}))
        made = [[f"{o[0]}{i}" for i in range(o[1])] if isinstance(o, tuple) else o for o in outputs]
        return tuple(made) if len(made) > 1 else made[0]


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def converter(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    ge: Any = ModuleType("torchair.ge")
    ge.custom_op = graph.custom_op
    ge.Cast = lambda x, *, dst_type: f"{dst_type}({x})"
    ge.Const = lambda values, *, dtype: f"{dtype}({values})"
    ge.DataType = SimpleNamespace(
        DT_FLOAT="float", DT_BF16="bf16", DT_INT32="int32", DT_INT64="int64"
    )
    ge.attr = SimpleNamespace(Str=str, Int=int, Bool=bool, Float=float)
    torchair: Any = ModuleType("torchair")
    torchair.ge = ge
    core: Any = ModuleType("torchair.core")
    core._torchair = graph
    monkeypatch.setitem(sys.modules, "torchair.core", core)
    monkeypatch.setitem(sys.modules, "torchair", torchair)
    monkeypatch.setitem(sys.modules, "torchair.ge", ge)
    forget()
    yield importlib.import_module(MODULES[0])
    forget()


def forget() -> None:
    """As if they had never been imported; `from . import` looks at the package's attributes."""
    for name in MODULES:
        package, _, module = name.partition(".")
        sys.modules.pop(name, None)
        vars(sys.modules[package]).pop(module, None)


def names(schema: Any) -> dict[str, str]:
    return {argument.name: argument.name for argument in schema.arguments}


def with_weights(*sizes: int) -> dict[str, Any]:
    """The arguments of npu_sparse_attention_pto by name, but weights of these sizes."""
    return names(FUSED) | {name: Argument(*sizes) for name in WEIGHTS}


def test_fused_op_is_one_node_with_its_inputs_in_order(converter: Any, graph: Graph) -> None:
    arguments = with_weights(7168, 64)
    with declared_for_a_test():
        assert converter.convert_sparse_attention(**arguments) == "y0"
    integers = ("cache_index", "block_table", "act_seqs")
    inputs = [f"int32({n})" if n in integers else given for n, given in arguments.items()]
    assert graph.nodes == [("SparseAttentionPto", {"x": inputs}, {})]


def test_fused_op_sees_3d_weights_as_matrices(converter: Any, graph: Graph) -> None:
    converter.convert_sparse_attention(**with_weights(4, 7168, 16))
    *reshapes, (fused, inputs, _) = graph.nodes
    assert [(made, given["shape"]) for made, given, _ in reshapes] == [
        ("Reshape", "int64([7168, 64])")
    ] * 6
    assert fused == "SparseAttentionPto"
    order = list(names(FUSED))
    assert [order[i] for i, given in enumerate(inputs["x"]) if given == "y"] == list(WEIGHTS)


def test_fused_op_brings_plain_weights_into_nz_order(converter: Any, graph: Graph) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converter.convert_sparse_attention(**with_weights(7168, 64))
    made = [(node, inputs.get("shape", inputs.get("perm"))) for node, inputs, _ in graph.nodes[:3]]
    assert made == [
        ("Reshape", "int64([7168, 4, 16])"),
        ("Transpose", "int64([1, 0, 2])"),
        ("Reshape", "int64([7168, 64])"),
    ]
    assert [node for node, _, _ in graph.nodes[3:]].count("Transpose") == 5
    assert graph.nodes[-1][0] == "SparseAttentionPto"


@pytest.mark.parametrize(
    ("convert", "op_type"),
    [("convert_sparse_attention", "SparseAttentionPto"), ("convert_mla_prolog", "MlaPrologV3")],
)
def test_an_error_in_making_the_node_is_not_taken_for_a_type_that_is_not_registered(
    converter: Any, monkeypatch: pytest.MonkeyPatch, convert: str, op_type: str
) -> None:
    def custom_op(op_type: str, **parts: Any) -> Any:
        raise RuntimeError(f"{op_type}: out of paper")

    monkeypatch.setattr(sys.modules["torchair.ge"], "custom_op", custom_op)
    is_fused = op_type == "SparseAttentionPto"
    arguments = with_weights(7168, 64) if is_fused else mla_arguments(1536)
    with declared_for_a_test(is_fused), pytest.raises(RuntimeError, match=f"{op_type}: out of pap"):
        getattr(converter, convert)(**arguments)


class Argument:
    """A tensor of bf16 as a converter sees it."""

    dtype = "bf16"

    def __init__(self, *sizes: int, dtype: torch.dtype = torch.bfloat16) -> None:
        self.symsize = sizes
        self.rank = len(sizes)
        self.meta = torch.empty(sizes, dtype=dtype, device="meta")

    def set_meta(self, meta: torch.Tensor) -> None:
        self.meta = meta


def mla_arguments(query_rank: int) -> dict[str, Any]:
    """The arguments of npu_mla_prolog at the sizes of DeepSeek-V3.2, if query_rank is 1536."""
    sizes = {
        "x": (2, 1, 7168),
        "w_dq": (7168, query_rank),
        "w_uq_qr": (query_rank, 128 * 192),
        "w_uk": (128, 128, 512),
        "w_dkv_kr": (7168, 576),
        "gamma_cq": (query_rank,),
        "gamma_ckv": (512,),
        "sin": (2, 1, 64),
        "cos": (2, 1, 64),
        "cache_index": (2, 1),
        "kv_cache": (9, 128, 1, 512),
        "kr_cache": (9, 128, 1, 64),
    }
    return {name: Argument(*shape) for name, shape in sizes.items()}


def test_mla_prolog_returns_what_its_schema_returns(
    converter: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {name: Argument() for name in ("query", "query_rope", "query_norm")}

    def custom_op(op_type: str, *, outputs: list[str], **parts: Any) -> tuple[Any, ...]:
        graph.custom_op(op_type, outputs=outputs, **parts)
        return tuple(made.get(name) for name in outputs)

    monkeypatch.setattr(sys.modules["torchair.ge"], "custom_op", custom_op)
    arguments = mla_arguments(query_rank=1536)
    outputs = converter.convert_mla_prolog(**arguments)
    assert outputs == tuple(made.values())
    assert [tuple(output.meta.shape) for output in outputs] == [
        (2, 1, 128, 512),
        (2, 1, 128, 64),
        (2, 1, 1536),
    ]
    (op_type, inputs, attrs) = graph.nodes[0]
    assert op_type == "MlaPrologV3"
    assert inputs["cache_index"].startswith("int64(")
    assert [inputs[name] for name in ("rope_sin", "rope_cos")] == [
        arguments["sin"],
        arguments["cos"],
    ]
    assert attrs["query_norm_flag"] is True


def test_mla_prolog_of_an_older_cann_is_made_of_its_steps(
    converter: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, outputs, attributes = MLA_PROLOG
    graph.mla_prolog = (inputs[:-1], outputs, [*attributes, ("k_nope_clip_alpha", "VT_FLOAT")])
    monkeypatch.setattr(converter, "_composed_mla_prolog", lambda *tensors: composed)
    composed = converter._Mla("query", "query_rope", "q_norm", "kv_cache", "kr_cache")
    made = converter.convert_mla_prolog(**mla_arguments(query_rank=1536))
    assert made == ("query", "query_rope", "q_norm")
    assert not graph.nodes


FITTING = ("x", "w_dq", "w_uq_qr", "w_uk", "w_dkv_kr", "gamma_cq", "gamma_ckv", "sin", "cos")


@pytest.mark.parametrize(
    "changed",
    [
        {"x": Argument(2, 1, 1024)},
        {"w_dq": Argument(7168, 1024)},
        {"w_dq": Argument(96, 7168, 16)},
        {"w_uk": Argument(3, 128, 512)},
        {"w_uk": Argument(128, 64, 512)},
        {"w_uk": Argument(128, 128, 256)},
        {"sin": Argument(2, 1, 32)},
        {"gamma_cq": Argument(1536, dtype=torch.float32)},
        {"sin": Argument(2, 1, 64, dtype=torch.float32)},
        {"kv_cache": Argument(9, 100, 1, 512)},
    ],
)
def test_mla_prolog_of_other_sizes_does_not_fit_the_stock_type(
    converter: Any, changed: dict[str, Any]
) -> None:
    fits = converter.limits.fits_mla_prolog
    arguments = mla_arguments(query_rank=1536)
    assert fits(*(arguments[name] for name in (*FITTING, "kv_cache")))
    arguments |= changed
    assert not fits(*(arguments[name] for name in (*FITTING, "kv_cache")))


def attention_arguments(*leading: int) -> dict[str, Any]:
    """The arguments of npu_sparse_flash_attention at sizes that SparseFlashAttention takes."""
    return names(ATTENTION) | {
        "query": Argument(*leading, 128, 512),
        "actual_seq_lengths_query": None if len(leading) == 2 else "actual_seq_lengths_query",
        "kv_cache": Argument(9, 128, 1, 512),
        "kr_cache": Argument(9, 128, 1, 64),
        "scale": 0.5,
        "sparse_mode": 0,
        "return_softmax_lse": False,
    }


@pytest.mark.parametrize(("leading", "layout"), [((3,), "TND"), ((2, 1), "BSND")])
def test_attention_passes_every_attribute(
    converter: Any, graph: Graph, leading: tuple[int, ...], layout: str
) -> None:
    arguments = attention_arguments(*leading)
    outputs = converter.convert_sparse_flash_attention(**arguments)
    assert outputs == ("attention_out", "softmax_max")
    (op_type, inputs, attrs) = graph.nodes[-1]
    assert op_type == "SparseFlashAttention"
    assert inputs["key"] == inputs["value"] == arguments["kv_cache"]
    assert inputs["block_table"] == "int32(block_table)"
    assert attrs["layout_query"] == layout
    assert (attrs["scale_value"], attrs["sparse_mode"], attrs["attention_mode"]) == (0.5, 0, 2)


def test_attention_puts_unused_indices_last(converter: Any, graph: Graph) -> None:
    converter.convert_sparse_flash_attention(**attention_arguments(2, 1))
    (sort, inputs, attrs), (_, attended, _) = graph.nodes
    assert (sort, inputs) == ("Sort", {"x": "int32(sparse_indices)"})
    assert (attrs["axis"], attrs["descending"]) == (-1, True)
    assert attended["sparse_indices"] == "y1"


def test_attention_clamps_the_query_lengths_of_a_4_d_query(converter: Any, graph: Graph) -> None:
    lengths = Argument(2)
    arguments = attention_arguments(2, 3) | {"actual_seq_lengths_query": lengths}
    converter.convert_sparse_flash_attention(**arguments)
    assert ("Minimum", {"x1": lengths, "x2": "bf16([3])"}, {}) in graph.nodes
    assert graph.nodes[-1][1]["actual_seq_lengths_query"] == "int32(y)"


def test_attention_passes_prefix_sums_of_a_3_d_query(converter: Any, graph: Graph) -> None:
    converter.convert_sparse_flash_attention(**attention_arguments(3))
    assert [node[0] for node in graph.nodes] == ["Sort", "SparseFlashAttention"]
    assert graph.nodes[-1][1]["actual_seq_lengths_query"] == "int32(actual_seq_lengths_query)"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"query": Argument(2, 1, 3, 512)}, "'query' must have 1, 2, 4, 8, 16, 32, 64 or 128"),
        ({"query": Argument(2, 1, 256, 512)}, "heads, got 256"),
        (
            {"query": Argument(2, 1, 128, 512, dtype=torch.float32)},
            "'kv_cache' must be bfloat16 or float16, got torch.float32",
        ),
        ({"kv_cache": Argument(9, 128, 1, 256)}, "'kv_cache' must have rows of size 512, got 256"),
        ({"kr_cache": Argument(9, 128, 1, 32)}, "'kr_cache' must have rows of size 64, got 32"),
        ({"kv_cache": Argument(9, 100, 1, 512)}, "multiple of 16 and at most 1024, got 100"),
    ],
)
def test_attention_of_other_sizes_is_refused(
    converter: Any, graph: Graph, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(RuntimeError) as caught:
        converter.convert_sparse_flash_attention(**(attention_arguments(2, 1) | changed))
    assert str(caught.value).startswith("npu_sparse_flash_attention: argument '")
    assert message in str(caught.value)
    assert "SparseAttentionPto" in str(caught.value)
    assert not graph.nodes


def fused_arguments() -> dict[str, Any]:
    """The arguments of npu_sparse_attention_pto, with shapes where limits look at them."""
    return names(FUSED) | {
        "x": Argument(2, 1, 7168),
        "w_uk": Argument(128, 128, 512),
        "kv_cache": Argument(9, 128, 1, 512),
        "kr_cache": Argument(9, 128, 1, 64),
        "w_idx_proj": Argument(7168, 64),
        "index_k_cache": Argument(9, 128, 1, 128),
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"w_uk": Argument(3, 128, 512)}, "'w_uk' must have 1, 2, 4, 8, 16, 32, 64 or 128 heads"),
        ({"w_idx_proj": Argument(7168, 65)}, "'w_idx_proj' must have at most 64 columns"),
        ({"w_idx_proj": Argument(5, 7168, 16)}, "heads, got 80"),
        ({"index_k_cache": Argument(9, 128, 1, 64)}, "'index_k_cache' must have rows of size 128"),
    ],
)
def test_fused_op_refuses_what_any_piece_does_not_take_before_it_makes_a_node(
    converter: Any, graph: Graph, changed: dict[str, Any], message: str
) -> None:
    graph.registered.remove("SparseAttentionPto")
    with pytest.raises(RuntimeError) as caught:
        converter.convert_sparse_attention(**(fused_arguments() | changed))
    assert str(caught.value).startswith("npu_sparse_attention_pto: argument '")
    assert message in str(caught.value)
    assert not graph.nodes


def test_attention_in_a_graph_refuses_log_sum_exp(converter: Any) -> None:
    arguments = {**names(ATTENTION), "return_softmax_lse": True}
    with pytest.raises(RuntimeError, match="argument 'return_softmax_lse' must be False"):
        converter.convert_sparse_flash_attention(**arguments)


def test_converters_take_the_arguments_of_their_ops(converter: Any) -> None:
    import inspect

    for convert, schema in (
        (converter.convert_sparse_attention, FUSED),
        (converter.convert_mla_prolog, MLA),
        (converter.convert_indexer_prolog, INDEXER),
        (converter.convert_sparse_flash_attention, ATTENTION),
    ):
        assert [*inspect.signature(convert).parameters] == [*names(schema), "meta_outputs"]
