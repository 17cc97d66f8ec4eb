"""How torchair expresses the ops as GE nodes; imported only once torchair is.

A custom opp package may register LightningIndexerPto: dynamic inputs x0..x4 (query, key, weights,
actual_seq_lengths_key, block_table), one dynamic output, no attributes. It serves the calls that
need none. Every other call, and every call where it is not registered, becomes CANN's own
LightningIndexer, with every attribute passed, or an error where that has limits. The int8 op
becomes CANN's QuantLightningIndexer likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from custom_pypto.core.contracts import check_limits, fits
from custom_pypto.core.ge_operators import is_registered
from torchair import ge
from torchair.ge import attr

from . import OP, QUANT_OP

if TYPE_CHECKING:
    from torchair.ge import Tensor

_ALL_TOKENS = 2**63 - 1


def convert_lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "PA_BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    meta_outputs: Any = None,
) -> Tensor:
    """LightningIndexerPto where it is registered and fits, else LightningIndexer."""
    arguments = {name: value for name, value in locals().items() if name != "meta_outputs"}
    lengths, table = as_int32(actual_seq_lengths_key), as_int32(block_table)
    if is_registered("LightningIndexerPto") and fits(OP, "aclnnLightningIndexerPto", arguments):
        (indices,) = ge.custom_op(
            "LightningIndexerPto",
            inputs={"x": [query, key, weights, lengths, table]},
            outputs=[("y", 1)],
        )
        return indices
    check_limits(OP, "aclnnLightningIndexer", arguments)
    indices, _ = ge.custom_op(
        "LightningIndexer",
        inputs={
            "query": query,
            "key": key,
            "weights": weights,
            "actual_seq_lengths_query": query_lengths(
                actual_seq_lengths_query, query, layout_query
            ),
            "actual_seq_lengths_key": lengths,
            "block_table": table,
        },
        attrs={
            "layout_query": attr.Str(layout_query),
            "layout_key": attr.Str(layout_key),
            "sparse_count": attr.Int(sparse_count),
            "sparse_mode": attr.Int(sparse_mode),
            "pre_tokens": attr.Int(_ALL_TOKENS),
            "next_tokens": attr.Int(_ALL_TOKENS),
            "return_values": attr.Bool(False),
        },
        outputs=["sparse_indices", "sparse_values"],
    )
    return indices


def convert_quant_lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    query_dequant_scale: Tensor,
    key_dequant_scale: Tensor,
    query_quant_mode: int,
    key_quant_mode: int,
    *,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    block_table: Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
    pre_tokens: int = _ALL_TOKENS,
    next_tokens: int = _ALL_TOKENS,
    query_dtype: int | None = None,
    key_dtype: int | None = None,
    meta_outputs: Any = None,
) -> Tensor:
    """QuantLightningIndexer."""
    arguments = {name: value for name, value in locals().items() if name != "meta_outputs"}
    check_limits(QUANT_OP, "aclnnQuantLightningIndexer", arguments)
    indices: Tensor = ge.custom_op(
        "QuantLightningIndexer",
        inputs={
            "query": query,
            "key": key,
            "weights": weights,
            "query_dequant_scale": query_dequant_scale,
            "key_dequant_scale": key_dequant_scale,
            "actual_seq_lengths_query": query_lengths(
                actual_seq_lengths_query, query, layout_query
            ),
            "actual_seq_lengths_key": as_int32(actual_seq_lengths_key),
            "block_table": as_int32(block_table),
        },
        attrs={
            "query_quant_mode": attr.Int(query_quant_mode),
            "key_quant_mode": attr.Int(key_quant_mode),
            "layout_query": attr.Str(layout_query),
            "layout_key": attr.Str(layout_key),
            "sparse_count": attr.Int(sparse_count),
            "sparse_mode": attr.Int(sparse_mode),
            "pre_tokens": attr.Int(pre_tokens),
            "next_tokens": attr.Int(next_tokens),
        },
        outputs=["sparse_indices"],
    )
    return indices


def query_lengths(lengths: Tensor | None, query: Tensor, layout: str) -> Tensor | None:
    """For CANN's own kernels, which do not know that of BSND queries a length above S1 means S1."""
    if lengths is not None and layout == "BSND":
        lengths = at_most(lengths, int(query.symsize[1]))  # a symbolic S1 is guarded
    return as_int32(lengths)


def at_most(lengths: Tensor, longest: int) -> Tensor:
    """Lengths, those above `longest` replaced by it."""
    limit = ge.Const([longest], dtype=lengths.dtype)
    return ge.custom_op("Minimum", inputs={"x1": lengths, "x2": limit}, outputs=["y"])


def as_int32(tensor: Tensor | None) -> Tensor | None:
    """The only integers that either type takes; GE drops a cast that changes nothing."""
    return None if tensor is None else ge.Cast(tensor, dst_type=ge.DataType.DT_INT32)
