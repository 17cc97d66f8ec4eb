"""How torchair expresses the op as GE nodes; imported only once torchair is.

A custom opp package may register LightningIndexerPto: dynamic inputs x0..x4 (query, key, weights,
actual_seq_lengths_key, block_table), one dynamic output, no attributes. It serves the calls that
need none. Every other call, and every call where it is not registered, becomes CANN's own
LightningIndexer, with every attribute passed, or an error where that has limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from custom_pypto.core.contracts import check_limits, fits
from custom_pypto.core.ge_operators import is_registered
from torchair import ge
from torchair.ge import attr

from . import OP

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
    lengths, table = _int32(actual_seq_lengths_key), _int32(block_table)
    if is_registered("LightningIndexerPto") and fits(OP, "aclnnLightningIndexerPto", arguments):
        (indices,) = ge.custom_op(
            "LightningIndexerPto",
            inputs={"x": [query, key, weights, lengths, table]},
            outputs=[("y", 1)],
        )
        return indices
    check_limits(OP, "aclnnLightningIndexer", arguments)
    if actual_seq_lengths_query is not None and layout_query == "BSND":
        # A length above S1 means S1, but is not for LightningIndexer. A symbolic S1 is guarded.
        actual_seq_lengths_query = at_most(actual_seq_lengths_query, int(query.symsize[1]))
    indices, _ = ge.custom_op(
        "LightningIndexer",
        inputs={
            "query": query,
            "key": key,
            "weights": weights,
            "actual_seq_lengths_query": _int32(actual_seq_lengths_query),
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


def at_most(lengths: Tensor, longest: int) -> Tensor:
    """Lengths, those above `longest` replaced by it."""
    limit = ge.Const([longest], dtype=lengths.dtype)
    return ge.custom_op("Minimum", inputs={"x1": lengths, "x2": limit}, outputs=["y"])


def _int32(tensor: Tensor | None) -> Tensor | None:
    """The only integers that either type takes; GE drops a cast that changes nothing."""
    return None if tensor is None else ge.Cast(tensor, dst_type=ge.DataType.DT_INT32)
