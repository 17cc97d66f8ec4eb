"""How torchair expresses npu_lightning_indexer and its gradient; imported only once torchair is.

They are CANN's LightningIndexer and LightningIndexerGrad. The first returns values in graphs on
Ascend 950 only, says CANN: elsewhere the graph engine refuses.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from custom_pypto.core import ge_steps as steps
from custom_pypto.core.contracts import arguments, check_limits
from torchair import ge
from torchair.ge import attr

from . import GRAD, WITH_VALUES
from .converter import lightning_indexer

if TYPE_CHECKING:
    from torchair.ge import Tensor


def convert_lightning_indexer(
    *args: Any, meta_outputs: Any = None, **kwargs: Any
) -> tuple[Tensor, Tensor]:
    """npu_lightning_indexer as LightningIndexer."""
    given = arguments(WITH_VALUES, args, kwargs)
    check_limits(WITH_VALUES, "aclnnLightningIndexer", given)
    return lightning_indexer(SimpleNamespace(**given), return_values=given["return_value"])


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
            **{name: steps.as_int32(given[name]) for name in integers},
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
