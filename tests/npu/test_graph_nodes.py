"""The nodes that torchair makes of each op. The scenario checks the results, too."""

from __future__ import annotations

from typing import Any

import pytest
from worker import Start, Worker

ALL_TOKENS = 2**63 - 1


def nodes(npu: Worker, op: str, sample: str, node_type: str) -> list[dict[str, Any]]:
    """The nodes of a type that torchair makes of a sample, in their order."""
    return [node for node in npu.run("graph.nodes", op, sample) if node["type"] == node_type]


def node(npu: Worker, op: str, sample: str, node_type: str) -> dict[str, Any]:
    """The one node of a type that torchair makes of a sample."""
    (found,) = nodes(npu, op, sample, node_type)
    return found


def types(npu: Worker, op: str, sample: str) -> set[str]:
    """The types of the nodes that torchair makes of a sample."""
    return {node["type"] for node in npu.run("graph.nodes", op, sample)}


def arguments(*names: str, **forms: str) -> dict[str, str]:
    """The sources of inputs with these names: the graph's arguments, in their order.

    A form, such as "{} as int32", says how an argument is converted.
    """
    return {
        name: forms.get(name, "{}").format(f"argument {index}") for index, name in enumerate(names)
    }


INT32 = "{} as int32"
COPY = "copy of {}"


@pytest.mark.parametrize(
    ("kernels", "node_type", "inputs", "output"),
    [("custom", "AddCustom", ("x", "y"), "z"), ("stock", "Add", ("x1", "x2"), "y")],
)
def test_add_custom_is_the_type_of_the_opp_package_or_a_stock_type(
    start: Start, kernels: str, node_type: str, inputs: tuple[str, ...], output: str
) -> None:
    assert start(kernels).run("graph.nodes", "add_custom", "float32") == [
        {
            "type": node_type,
            "inputs": arguments(*inputs),
            "outputs": [output],
            "attributes": {},
        }
    ]


def test_the_backward_of_add_custom_copies_twice(graph_npu: Worker) -> None:
    copy = {"type": "TensorMove", "inputs": arguments("x"), "outputs": ["y"], "attributes": {}}
    assert graph_npu.run("graph.nodes", "add_custom_backward", "float32") == [copy, copy]


@pytest.mark.parametrize("sample", ["published-size", "int64-lengths"])
def test_the_indexer_without_options_is_the_type_of_the_opp_package(
    start: Start, sample: str
) -> None:
    op = "npu_lightning_indexer_pto"
    assert types(start("custom"), op, sample) == {"Cast", "LightningIndexerPto"}
    assert node(start("custom"), op, sample, "LightningIndexerPto") == {
        "type": "LightningIndexerPto",
        "inputs": arguments("x0", "x1", "x2", "x3", "x4", x3=INT32, x4=INT32),
        "outputs": ["y0"],
        "attributes": {},
    }


INDEXER_INPUTS = {
    "query": "argument 0",
    "key": "argument 1",
    "weights": "argument 2",
    "actual_seq_lengths_query": None,
    "actual_seq_lengths_key": "argument 3 as int32",
    "block_table": "argument 4 as int32",
}
INDEXER_ATTRIBUTES = {
    "layout_query": "BSND",
    "layout_key": "PA_BSND",
    "sparse_count": 2048,
    "sparse_mode": 3,
    "pre_tokens": ALL_TOKENS,
    "next_tokens": ALL_TOKENS,
    "return_values": False,
}


def test_the_indexer_is_a_stock_type_without_the_opp_package(start: Start) -> None:
    op, sample = "npu_lightning_indexer_pto", "int64-lengths"
    assert types(start("stock"), op, sample) == {"Cast", "LightningIndexer"}
    assert node(start("stock"), op, sample, "LightningIndexer") == {
        "type": "LightningIndexer",
        "inputs": INDEXER_INPUTS,
        "outputs": ["sparse_indices", "sparse_values"],
        "attributes": INDEXER_ATTRIBUTES,
    }


def test_the_int8_indexer_is_a_stock_type(start: Start) -> None:
    op, sample = "npu_quant_lightning_indexer", "not-causal"
    assert node(start("stock"), op, sample, "QuantLightningIndexer") == {
        "type": "QuantLightningIndexer",
        "inputs": arguments(
            *("query", "key", "weights", "query_dequant_scale", "key_dequant_scale"),
            *("actual_seq_lengths_key", "block_table"),
            actual_seq_lengths_key=INT32,
            block_table=INT32,
        )
        | {"actual_seq_lengths_query": None},
        "outputs": ["sparse_indices"],
        "attributes": {
            "query_quant_mode": 0,
            "key_quant_mode": 0,
            "layout_query": "BSND",
            "layout_key": "PA_BSND",
            "sparse_count": 100,
            "sparse_mode": 0,
            "pre_tokens": ALL_TOKENS,
            "next_tokens": ALL_TOKENS,
        },
    }


@pytest.mark.parametrize(
    ("sample", "inputs", "attributes"),
    [
        (
            "tnd-paged",
            {"actual_seq_lengths_query": "argument 5 as int32"},
            {"layout_query": "TND", "sparse_count": 20},
        ),
        ("not-causal", {}, {"sparse_count": 100, "sparse_mode": 0}),
        (
            "bsnd-lengths",
            {
                "actual_seq_lengths_query": "Minimum as int32",
                "actual_seq_lengths_key": "argument 4 as int32",
                "block_table": None,
            },
            {"layout_key": "BSND", "sparse_count": 12},
        ),
    ],
)
def test_the_indexer_with_options_passes_them_to_the_stock_type(
    graph_npu: Worker, sample: str, inputs: dict[str, Any], attributes: dict[str, Any]
) -> None:
    assert node(graph_npu, "npu_lightning_indexer_pto", sample, "LightningIndexer") == {
        "type": "LightningIndexer",
        "inputs": INDEXER_INPUTS | inputs,
        "outputs": ["sparse_indices", "sparse_values"],
        "attributes": INDEXER_ATTRIBUTES | attributes,
    }


@pytest.mark.parametrize(
    ("op", "sample", "argument"),
    [
        ("npu_lightning_indexer_pto", "bsnd-prefix-sums", 3),
        ("npu_lightning_indexer_pto", "prefix-sums", 5),
        ("npu_sparse_flash_attention", "prefix-sums", 7),
    ],
)
def test_query_lengths_of_bsnd_are_clamped_in_the_graph(
    graph_npu: Worker, op: str, sample: str, argument: int
) -> None:
    assert node(graph_npu, op, sample, "Minimum") == {
        "type": "Minimum",
        "inputs": {"x1": f"argument {argument}", "x2": "Const"},
        "outputs": ["y"],
        "attributes": {},
    }
    stock = {"LightningIndexer", "SparseFlashAttention"} & types(graph_npu, op, sample)
    (reader,) = (node(graph_npu, op, sample, node_type) for node_type in stock)
    assert reader["inputs"]["actual_seq_lengths_query"] == "Minimum as int32"


def test_query_lengths_of_tnd_are_passed_as_they_are(graph_npu: Worker) -> None:
    assert "Minimum" not in types(graph_npu, "npu_lightning_indexer_pto", "tnd-paged")
    assert "Minimum" not in types(graph_npu, "npu_sparse_flash_attention", "deepseek-tnd")


def test_the_fused_op_is_the_type_of_the_opp_package(start: Start) -> None:
    assert node(start("custom"), "npu_sparse_attention_pto", "wide", "SparseAttentionPto") == {
        "type": "SparseAttentionPto",
        "inputs": arguments(
            *(f"x{index}" for index in range(20)),
            **{f"x{index}": INT32 for index in (9, 12, 13)},
            **{f"x{index}": COPY for index in (10, 11, 19)},
            **{f"x{index}": "Transpose reshaped" for index in (1, 2, 4, 14, 15, 16)},
        ),
        "outputs": ["y0"],
        "attributes": {},
    }


ATTENTION_ATTRIBUTES = {
    "scale_value": pytest.approx(576**-0.5),
    "sparse_block_size": 1,
    "layout_query": "BSND",
    "layout_kv": "PA_BSND",
    "sparse_mode": 3,
    "pre_tokens": ALL_TOKENS,
    "next_tokens": ALL_TOKENS,
    "attention_mode": 2,
    "return_softmax_lse": False,
}
ATTENTION_OUTPUTS = ["attention_out", "softmax_max", "softmax_sum"]


def test_the_fused_op_is_its_pieces_without_the_opp_package(start: Start) -> None:
    op, npu = "npu_sparse_attention_pto", start("stock")
    written = "copy of argument {} after ScatterNdUpdate"
    assert node(npu, op, "deepseek", "LightningIndexer") == {
        "type": "LightningIndexer",
        "inputs": {
            "query": "ConcatV2 reshaped",
            "key": written.format(19),
            "weights": "MatMulV2 reshaped",
            "actual_seq_lengths_query": None,
            "actual_seq_lengths_key": "argument 13 as int32",
            "block_table": "argument 12 as int32",
        },
        "outputs": ["sparse_indices", "sparse_values"],
        "attributes": INDEXER_ATTRIBUTES,
    }
    assert node(npu, op, "deepseek", "SparseFlashAttention") == {
        "type": "SparseFlashAttention",
        "inputs": {
            "query": "Transpose reshaped",
            "key": written.format(10),
            "value": written.format(10),
            "sparse_indices": "LightningIndexer.sparse_indices",
            "block_table": "argument 12 as int32",
            "actual_seq_lengths_query": None,
            "actual_seq_lengths_kv": "argument 13 as int32",
            "query_rope": "Add as bfloat16 reshaped",
            "key_rope": written.format(11),
        },
        "outputs": ATTENTION_OUTPUTS,
        "attributes": ATTENTION_ATTRIBUTES,
    }
    products = [
        (each["inputs"]["x1"], each["inputs"]["x2"])
        for each in nodes(npu, op, "deepseek", "MatMulV2")
    ]
    assert [weight for _, weight in products] == [
        *("argument 1", "argument 2", "argument 4"),
        *("argument 14", "argument 15 as float32", "argument 16"),
    ]


def test_the_fused_op_has_the_stock_prolog_at_the_sizes_that_it_takes(start: Start) -> None:
    op, npu = "npu_sparse_attention_pto", start("stock")
    prolog = "MlaPrologV3"
    assert node(npu, op, "published", prolog)["inputs"] == PROLOG_INPUTS
    attention = node(npu, op, "published", "SparseFlashAttention")["inputs"]
    assert attention["query"] == f"{prolog}.query"
    assert attention["query_rope"] == f"{prolog}.query_rope"
    assert attention["key"] == attention["value"] == f"copy of argument 10 after {prolog}"
    assert attention["key_rope"] == f"copy of argument 11 after {prolog}"
    (query, *_) = nodes(npu, op, "published", "MatMulV2")
    assert query["inputs"] == {"x1": f"{prolog}.query_norm reshaped", "x2": "argument 14"}


@pytest.mark.parametrize(
    ("sample", "lengths", "attributes"),
    [
        ("2048-positions-not-causal", None, {"sparse_mode": 0}),
        ("deepseek-tnd", "argument 7 as int32", {"layout_query": "TND"}),
    ],
)
def test_attention_passes_every_input_and_attribute(
    graph_npu: Worker, sample: str, lengths: str | None, attributes: dict[str, Any]
) -> None:
    op = "npu_sparse_flash_attention"
    assert types(graph_npu, op, sample) == {"Cast", "Sort", "SparseFlashAttention"}
    assert node(graph_npu, op, sample, "SparseFlashAttention") == {
        "type": "SparseFlashAttention",
        "inputs": {
            "query": "argument 0",
            "key": "argument 2",
            "value": "argument 2",
            "sparse_indices": "Sort.y1",
            "block_table": "argument 5 as int32",
            "actual_seq_lengths_query": lengths,
            "actual_seq_lengths_kv": "argument 6 as int32",
            "query_rope": "argument 1",
            "key_rope": "argument 3",
        },
        "outputs": ATTENTION_OUTPUTS,
        "attributes": ATTENTION_ATTRIBUTES | attributes,
    }
    # CANN's operator wants the padding, which is -1, last.
    assert node(graph_npu, op, sample, "Sort") == {
        "type": "Sort",
        "inputs": {"x": "argument 4 as int32"},
        "outputs": ["y1", "y2"],
        "attributes": {"axis": -1, "descending": True, "stable": False},
    }


PROLOG_INPUTS = {
    "token_x": "argument 0",
    "weight_dq": "argument 1",
    "weight_uq_qr": "argument 2",
    "weight_uk": "argument 3",
    "weight_dkv_kr": "argument 4",
    "rmsnorm_gamma_cq": "argument 5",
    "rmsnorm_gamma_ckv": "argument 6",
    "rope_sin": "argument 7",
    "rope_cos": "argument 8",
    "kv_cache": "copy of argument 10",
    "kr_cache": "copy of argument 11",
    "cache_index": "argument 9 as int64",
    "dequant_scale_x": None,
    "dequant_scale_w_dq": None,
    "dequant_scale_w_uq_qr": None,
    "dequant_scale_w_dkv_kr": None,
    "quant_scale_ckv": None,
    "quant_scale_ckr": None,
    "smooth_scales_cq": None,
    "actual_seq_len": None,
    "k_nope_clip_alpha": None,
}


def test_the_mla_prolog_is_a_stock_type_at_the_sizes_that_it_takes(graph_npu: Worker) -> None:
    assert node(graph_npu, "npu_mla_prolog", "published", "MlaPrologV3") == {
        "type": "MlaPrologV3",
        "inputs": PROLOG_INPUTS,
        "outputs": [
            *("query", "query_rope", "kv_cache", "kr_cache"),
            *("dequant_scale_q_nope", "query_norm", "dequant_scale_q_norm"),
        ],
        "attributes": {
            "rmsnorm_epsilon_cq": pytest.approx(1e-5),
            "rmsnorm_epsilon_ckv": pytest.approx(1e-5),
            "cache_mode": "PA_BSND",
            "query_norm_flag": True,
            "weight_quant_mode": 0,
            "kv_cache_quant_mode": 0,
            "query_quant_mode": 0,
            "ckvkr_repo_mode": 0,
            "quant_scale_repo_mode": 0,
            "tile_size": 128,
            "qc_qr_scale": 1.0,
            "kc_scale": 1.0,
        },
    }


@pytest.mark.parametrize("op", ["npu_mla_prolog", "npu_sparse_attention_pto"])
def test_an_mla_prolog_of_an_older_cann_is_not_named(start: Start, op: str) -> None:
    made = types(start("older", cann="8.3.RC1"), op, "published")
    assert "MlaPrologV3" not in made
    assert {"BatchMatMulV2", "ScatterNdUpdate"} <= made


ANGLES = [
    ("Mul", "ConcatV2", "argument 8 reshaped as float32"),
    ("Mul", "ConcatV2", "argument 7 reshaped as float32"),
]


def connections(npu: Worker, op: str) -> list[tuple[str, ...]]:
    """The types of a prolog's nodes that compute or write, each with the sources of its inputs."""
    names = {
        "MatMulV2": ("x1", "x2"),
        "BatchMatMulV2": ("x1", "x2"),
        "RmsNorm": ("x", "gamma"),
        "LayerNormV4": ("x", "gamma", "beta"),
        "Mul": ("x1", "x2"),
        "ScatterNdUpdate": ("var", "updates"),
        "FloorDiv": ("x1",),
    }
    return [
        (each["type"], *(each["inputs"][name] for name in names[each["type"]]))
        for each in npu.run("graph.nodes", op, "small")
        if each["type"] in names
    ]


def test_an_mla_prolog_without_a_type_is_its_steps(graph_npu: Worker) -> None:
    assert connections(graph_npu, "npu_mla_prolog") == [
        ("MatMulV2", "argument 0 reshaped", "argument 1"),
        ("RmsNorm", "MatMulV2 as float32", "argument 5 as float32"),
        ("MatMulV2", "RmsNorm.y as bfloat16", "argument 2"),
        ("BatchMatMulV2", "Transpose", "argument 3"),
        *ANGLES,
        ("MatMulV2", "argument 0 reshaped", "argument 4"),
        ("RmsNorm", "StridedSlice as float32", "argument 6 as float32"),
        *ANGLES,
        ("FloorDiv", "argument 9 as int64 reshaped"),
        ("ScatterNdUpdate", "copy of argument 11", "Add as bfloat16 reshaped"),
        ("FloorDiv", "copy of argument 9 as int64 reshaped"),
        ("ScatterNdUpdate", "copy of argument 10", "RmsNorm.y as bfloat16 reshaped"),
    ]


def test_the_indexer_prolog_is_its_steps(graph_npu: Worker) -> None:
    assert connections(graph_npu, "npu_indexer_prolog") == [
        ("MatMulV2", "argument 1 reshaped", "argument 2"),
        *ANGLES,
        ("MatMulV2", "argument 0 reshaped as float32", "argument 3 as float32"),
        ("LayerNormV4", "MatMulV2", "argument 5 as float32", "argument 6 as float32"),
        *ANGLES,
        ("MatMulV2", "argument 0 reshaped", "argument 4"),
        ("FloorDiv", "argument 9 as int64 reshaped"),
        ("ScatterNdUpdate", "copy of argument 10", "ConcatV2 reshaped"),
    ]


STEP_ATTRIBUTES = {
    "MatMulV2": {"transpose_x1": False, "transpose_x2": False},
    "BatchMatMulV2": {"adj_x1": False, "adj_x2": False},
    "RmsNorm": {"epsilon": pytest.approx(1e-5)},
    "LayerNormV4": {"epsilon": pytest.approx(1e-6)},
    "ConcatV2": {"N": 2},
    "ScatterNdUpdate": {"use_locking": False},
}


@pytest.mark.parametrize("op", ["npu_mla_prolog", "npu_indexer_prolog"])
def test_the_steps_of_a_prolog_have_their_attributes(graph_npu: Worker, op: str) -> None:
    made = graph_npu.run("graph.nodes", op, "small")
    assert {"MatMulV2", "ScatterNdUpdate"} <= {each["type"] for each in made}
    for each in made:
        if each["type"] in STEP_ATTRIBUTES:
            assert each["attributes"] == STEP_ATTRIBUTES[each["type"]], each["type"]


@pytest.mark.parametrize(
    ("op", "sample", "caches"),
    [
        ("npu_mla_prolog", "small", (10, 11)),
        ("npu_mla_prolog", "published", (10, 11)),
        ("npu_indexer_prolog", "small", (10,)),
        ("npu_sparse_attention_pto", "deepseek", (10, 11, 19)),
        ("npu_sparse_attention_pto", "published", (10, 11, 19)),
    ],
)
def test_every_cache_is_written_by_nodes_that_the_outputs_need(
    graph_npu: Worker, op: str, sample: str, caches: tuple[int, ...]
) -> None:
    assert graph_npu.run("graph.written_arguments", op, sample) == [f"argument {i}" for i in caches]


@pytest.mark.parametrize(
    ("op", "sample", "caches"),
    [
        ("npu_mla_prolog", "published", ()),
        # Two nodes write, and torchair looks at the last one only.
        ("npu_mla_prolog", "small", (11,)),
        ("npu_indexer_prolog", "small", ()),
        # The last node writes none, or none that its IR names.
        ("npu_sparse_attention_pto", "published", (10, 11, 19)),
    ],
)
def test_a_graph_copies_no_cache_that_its_last_node_writes(
    graph_npu: Worker, op: str, sample: str, caches: tuple[int, ...]
) -> None:
    assert graph_npu.run("graph.copied_arguments", op, sample) == [f"argument {i}" for i in caches]
