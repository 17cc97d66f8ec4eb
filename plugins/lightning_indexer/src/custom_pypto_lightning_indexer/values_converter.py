"""How torchair expresses npu_lightning_indexer and its gradient; imported only once torchair is.

They are CANN's LightningIndexer and LightningIndexerGrad. The first returns values in graphs on
Ascend 950 only, says CANN: elsewhere the graph engine refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from custom_pypto.core.contracts import arguments, check_limits
from torchair import ge
from torchair.ge import attr

from . import GRAD, WITH_VALUES
from .converter import as_int32, query_lengths

if TYPE_CHECKING:
    from torchair.ge import Tensor


def convert_lightning_indexer(
    *args: Any, meta_outputs: Any = None, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """npu_lightning_indexer as LightningIndexer."""
    given = arguments(WITH_VALUES, args, kwargs)
    check_limits(WITH_VALUES, "aclnnLightningIndexer", given)
    indices, values = ge.custom_op(
        "LightningIndexer",
        inputs={
            **{name: given[name] for name in ("query", "key", "weights")},
            "actual_seq_lengths_query": query_lengths(
                given["actual_seq_lengths_query"], given["query"], given["layout_query"]
            ),
            "actual_seq_lengths_key": as_int32(given["actual_seq_lengths_key"]),
            "block_table": as_int32(given["block_table"]),
        },
        attrs={
            **{name: attr.Str(given[name]) for name in ("layout_query", "layout_key")},
            **{
                name: attr.Int(given[name])
                for name in ("sparse_count", "sparse_mode", "pre_tokens", "next_tokens")
            },
            "return_values": attr.Bool(given["return_value"]),
        },
        outputs=["sparse_indices", "sparse_values"],
    )
    return indices, values


def convert_lightning_indexer_grad(
    *args: Any, meta_outputs: Any = None, **kwargs: Any
) -> tuple[Tensor, ...]:
    """npu_lightning_indexer_grad as LightningIndexerGrad."""
    given = arguments(GRAD, args, kwargs)
    check_limits(GRAD, "aclnnLightningIndexerGrad", given)
    integers = ("sparse_indices", "actual_seq_lengths_query", "actual_seq_lengths_key")
    gradients = ge.custom_op(
        "LightningIndexerGrad",
        inputs={
            **{name: given[name] for name in ("query", "key", "dy", "weights")},
            **{name: as_int32(given[name]) for name in integers},
        },
        attrs={
            # As torch_npu passes it: the operator takes the number from the query.
            "headNum": attr.Int(0),
            "layout": attr.Str(given["layout"]),
            "sparseMode": attr.Int(given["sparse_mode"]),
            "preTokens": attr.Int(given["pre_tokens"]),
            "nextTokens": attr.Int(given["next_tokens"]),
            "determinstic": attr.Bool(True),  # CANN's spelling
        },
        outputs=["dq", "dk", "dweights"],
    )
    return tuple(gradients)
