"""How torchair expresses the ops as GE nodes; imported only once torchair is.

A custom opp package may register LightningIndexerPto: dynamic inputs x0..x4 (query, key, weights,
actual_seq_lengths_key, block_table), one dynamic output, no attributes. It serves the calls that
need none. Every other call, and every call where it is not registered, becomes CANN's own
LightningIndexer, with every attribute passed, or an error where that has limits. The other ops
become CANN's LightningIndexer, QuantLightningIndexer and LightningIndexerGrad likewise.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from custom_pypto.core import contract
from custom_pypto.core.contracts import check_limits, supports
from custom_pypto.core.ge_operators import is_registered
from custom_pypto_blocks import ge_steps as steps
from torchair import ge
from torchair.ge import attr

from . import GRAD, OP, QUANT_OP, QUANT_V2, V2, WITH_VALUES
from .ops import ALL_TOKENS

if TYPE_CHECKING:
    from torchair.ge import Tensor


@steps.converter_of(OP)
def convert_lightning_indexer(a: SimpleNamespace) -> Tensor:
    """LightningIndexerPto where it is registered and supports the call, else LightningIndexer."""
    if is_registered("LightningIndexerPto") and supports(
        contract(OP), "aclnnLightningIndexerPto", vars(a)
    ):
        lengths, table = map(steps.as_int32, (a.actual_seq_lengths_key, a.block_table))
        (indices,) = ge.custom_op(
            "LightningIndexerPto",
            inputs={"x": [a.query, a.key, a.weights, lengths, table]},
            outputs=[("y", 1)],
        )
        return indices
    check_limits(contract(OP), "aclnnLightningIndexer", vars(a))
    indices, _ = _lightning_indexer(a, return_values=False)
    return indices


@steps.converter_of(QUANT_OP)
def convert_quant_lightning_indexer(a: SimpleNamespace) -> Tensor:
    """QuantLightningIndexer."""
    check_limits(contract(QUANT_OP), "aclnnQuantLightningIndexer", vars(a))
    indices: Tensor = ge.custom_op(
        "QuantLightningIndexer",
        inputs={
            **_tensors(a),
            "query_dequant_scale": a.query_dequant_scale,
            "key_dequant_scale": a.key_dequant_scale,
            **_lengths(a),
        },
        attrs={
            "query_quant_mode": attr.Int(a.query_quant_mode),
            "key_quant_mode": attr.Int(a.key_quant_mode),
            **_attributes(a),
        },
        outputs=["sparse_indices"],
    )
    return indices


@steps.converter_of(WITH_VALUES)
def convert_lightning_indexer_with_values(a: SimpleNamespace) -> tuple[Tensor, Tensor]:
    """LightningIndexer. Values on other machines than Ascend 950 the graph engine refuses."""
    check_limits(contract(WITH_VALUES), "aclnnLightningIndexer", vars(a))
    return _lightning_indexer(a, return_values=a.return_value)


@steps.converter_of(GRAD)
def convert_lightning_indexer_grad(a: SimpleNamespace) -> tuple[Tensor, ...]:
    """LightningIndexerGrad."""
    check_limits(contract(GRAD), "aclnnLightningIndexerGrad", vars(a))
    integers = ("sparse_indices", "actual_seq_lengths_query", "actual_seq_lengths_key")
    gradients = ge.custom_op(
        "LightningIndexerGrad",
        inputs={
            **{name: getattr(a, name) for name in ("query", "key", "dy", "weights")},
            **{name: steps.as_int32(getattr(a, name)) for name in integers},
        },
        attrs={
            # As torch_npu passes it: the operator takes the number from the query.
            "headNum": attr.Int(0),
            "layout": attr.Str(a.layout),
            "sparseMode": attr.Int(a.sparse_mode),
            "preTokens": attr.Int(a.pre_tokens),
            "nextTokens": attr.Int(a.next_tokens),
            "determinstic": attr.Bool(True),  # CANN's spelling
        },
        outputs=["dq", "dk", "dweights"],
    )
    return tuple(gradients)


def _lightning_indexer(a: SimpleNamespace, *, return_values: bool) -> tuple[Tensor, Tensor]:
    """The node of CANN's LightningIndexer, for an op's arguments: indices and values."""
    indices, values = ge.custom_op(
        "LightningIndexer",
        inputs=_tensors(a) | _lengths(a),
        attrs=_attributes(a) | {"return_values": attr.Bool(return_values)},
        outputs=["sparse_indices", "sparse_values"],
    )
    return indices, values


def _tensors(a: SimpleNamespace) -> dict[str, Tensor]:
    return {"query": a.query, "key": a.key, "weights": a.weights}


def _lengths(a: SimpleNamespace) -> dict[str, Tensor | None]:
    of_queries = a.actual_seq_lengths_query
    if of_queries is not None and a.layout_query == "BSND":
        # A length above S1 means S1, but is not for CANN's own kernels. A symbolic S1 is guarded.
        of_queries = steps.clamp_max(of_queries, steps.size(a.query, 1))
    return {
        "actual_seq_lengths_query": steps.as_int32(of_queries),
        "actual_seq_lengths_key": steps.as_int32(a.actual_seq_lengths_key),
        "block_table": steps.as_int32(a.block_table),
    }


def _attributes(a: SimpleNamespace) -> dict[str, Any]:
    """The attributes of the first version's ops. pre_tokens and next_tokens must be ALL_TOKENS."""
    return {
        "layout_query": attr.Str(a.layout_query),
        "layout_key": attr.Str(a.layout_key),
        "sparse_count": attr.Int(a.sparse_count),
        "sparse_mode": attr.Int(a.sparse_mode),
        "pre_tokens": attr.Int(ALL_TOKENS),
        "next_tokens": attr.Int(ALL_TOKENS),
    }


@steps.converter_of(V2)
def convert_lightning_indexer_v2(a: SimpleNamespace) -> tuple[Tensor, ...]:
    """LightningIndexerV2."""
    check_limits(contract(V2), "aclnnLightningIndexerV2", vars(a))
    return _second_version("LightningIndexerV2", a, {"q": a.q, "k": a.k, "w": a.w}, {})


@steps.converter_of(QUANT_V2)
def convert_quant_lightning_indexer_v2(a: SimpleNamespace) -> tuple[Tensor, ...]:
    """QuantLightningIndexerV2, whose inputs have the names of CANN's newer interface."""
    check_limits(contract(QUANT_V2), "aclnnQuantLightningIndexerV2", vars(a))
    tensors = {
        "q": a.query,
        "k": a.key,
        "w": a.weights,
        "q_descale": a.query_dequant_scale,
        "k_descale": a.key_dequant_scale,
    }
    attributes = {"quant_mode": attr.Int(a.quant_mode)}
    return _second_version("QuantLightningIndexerV2", a, tensors, attributes)


def _second_version(
    operator: str, a: SimpleNamespace, tensors: dict[str, Tensor], attributes: dict[str, Any]
) -> tuple[Tensor, ...]:
    """The node of an operator of CANN: indices and values."""
    integers = (
        *("cu_seqlens_q", "cu_seqlens_k", "seqused_q", "seqused_k", "cmp_residual_k"),
        *("block_table", "output_idx_offset", "metadata"),
    )
    numbers = ("topk", "max_seqlen_q", "mask_mode", "cmp_ratio", "return_value")
    results = ge.custom_op(
        operator,
        inputs=tensors | {name: steps.as_int32(getattr(a, name)) for name in integers},
        attrs={
            **{name: attr.Int(getattr(a, name)) for name in numbers},
            **{name: attr.Str(getattr(a, name)) for name in ("layout_q", "layout_k")},
            **attributes,
        },
        outputs=["sparse_indices", "sparse_values"],
    )
    return tuple(results)
