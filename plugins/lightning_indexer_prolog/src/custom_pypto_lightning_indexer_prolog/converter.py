"""How torchair expresses the op as GE nodes; imported only once torchair is.

LightningIndexerPrologPto where an opp package registers it and the sizes are those that it is
compiled for: dynamic inputs x0..x15 in schema order, dynamic outputs y0..y2, and every attribute.
Else the steps of README.md as common operators and CANN's QuantBatchMatmulV3.

The caches arrive here functionalised: torchair copies each, hands the copy in, and takes it for the
new cache once the last node made here has run. So that node must need every node that writes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from custom_pypto.core import contract
from custom_pypto.core.contracts import supports
from custom_pypto.core.ge_operators import is_registered
from custom_pypto_blocks import ge_steps as steps
from torchair import ge
from torchair.ge import attr

from . import OP

if TYPE_CHECKING:
    from torchair.ge import Tensor

_FUSED = "LightningIndexerPrologPto"
_TYPES = ge.DataType


@steps.converter_of(OP)
def convert_prolog(a: SimpleNamespace) -> tuple[Tensor, ...]:
    """Query, its scales and the weights: of one node where that can be, else of the op's steps."""
    if is_registered(_FUSED) and supports(contract(OP), "aclnnLightningIndexerPrologPto", vars(a)):
        return _fused(a)
    return _compose(a)


def _fused(a: SimpleNamespace) -> tuple[Tensor, ...]:
    attributes = ("layernorm_epsilon_k", "layout_query", "layout_key")
    inputs = {name: value for name, value in vars(a).items() if name not in attributes}
    inputs["idx_k_cache_index"] = steps.cast(a.idx_k_cache_index, _TYPES.DT_INT64)
    query, query_scale, weights = ge.custom_op(
        _FUSED,
        inputs={"x": list(inputs.values())},
        attrs={
            "layernorm_epsilon_k": attr.Float(a.layernorm_epsilon_k),
            "layout_query": attr.Str(a.layout_query or "TND"),
            "layout_key": attr.Str(a.layout_key or "PA_BSND"),
        },
        outputs=[("y", 3)],
    )
    return query, query_scale, weights


def _compose(a: SimpleNamespace) -> tuple[Tensor, ...]:
    size, rotated = steps.size(a.wk, 1), steps.size(a.cos_idx_rope, 1)
    heads, dtype = steps.size(a.weights_proj, 1), a.token_x.dtype
    angles = (a.sin_idx_rope, a.cos_idx_rope)

    no = attr.Bool(False)
    q = steps.node(
        "QuantBatchMatmulV3",
        {"dtype": attr.Int(_TYPES.DT_BF16), "transpose_x1": no, "transpose_x2": no},
        x1=a.q_norm,
        x2=a.wq_b,
        scale=steps.reshape(a.wq_b_scale, -1),
        offset=None,
        bias=None,
        pertoken_scale=steps.reshape(a.q_norm_scale, -1),
    )
    q.set_meta(a.token_x.meta.new_empty((a.token_x.symsize[0], heads * size)))
    q = steps.rope_first(steps.reshape(q, -1, heads, size), size, rotated, *angles, dtype)
    q = steps.matmul(steps.reshape(q, -1, size), a.hadamard_q)
    query, query_scale = _quantise(q)

    # The key's products are normed before they are rounded.
    k = steps.matmul(steps.as_float32(a.token_x), steps.as_float32(a.wk))
    k = steps.layer_norm(k, a.ln_gamma_k, a.ln_beta_k, a.layernorm_epsilon_k)
    k = steps.reshape(steps.cast(k, dtype), -1, 1, size)
    k = steps.reshape(steps.rope_first(k, size, rotated, *angles, dtype), -1, size)
    k = steps.cast(steps.matmul(steps.as_float32(k), steps.as_float32(a.hadamard_k)), dtype)
    key, key_scale = _quantise(k)

    weights = steps.as_float32(steps.matmul(a.token_x, a.weights_proj))
    for factor in (heads**-0.5, size**-0.5):
        weights = steps.node("Mul", x1=weights, x2=_number(factor))
    query = steps.reshape(query, -1, heads, size)
    query_scale = steps.reshape(query_scale, -1, heads, 1)
    weights = steps.cast(weights, _TYPES.DT_FLOAT16)
    # The larger cache last: of the two, it is the one that torchair need not copy.
    scales = steps.scatter(a.idx_k_scale_cache, a.idx_k_cache_index, key_scale)
    steps.scatter(a.idx_k_cache, a.idx_k_cache_index, key, after=scales)
    return query, query_scale, weights


def _quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """x [rows, D] as int8, and its fp16 scales [rows, 1]; zeros and scale 0 of a row of zeros."""
    x = steps.as_float32(x)
    magnitude = steps.node("Abs", x=x)
    keep_dims = {"keep_dims": attr.Bool(True)}
    largest = steps.node("ReduceMax", keep_dims, x=magnitude, axes=steps.integers([-1]))
    factor = steps.node("RealDiv", x1=_number(127), x2=largest)
    # Where 127 / 0 is infinite the numbers would be NaN; its reciprocal is 0 as it should be.
    is_zero = steps.node("Equal", x1=factor, x2=_number(float("inf")))
    scaled = steps.node("Mul", x1=x, x2=factor)
    kept = ge.custom_op(
        "SelectV2",
        inputs={"condition": is_zero, "then": _number(0), "else": scaled},
        outputs=["result"],
    )
    integers = steps.cast(steps.node("Rint", x=kept), _TYPES.DT_INT8)
    scales = steps.cast(steps.node("Reciprocal", x=factor), _TYPES.DT_FLOAT16)
    return integers, scales


def _number(value: float) -> Tensor:
    return ge.Const(value, dtype=_TYPES.DT_FLOAT)
