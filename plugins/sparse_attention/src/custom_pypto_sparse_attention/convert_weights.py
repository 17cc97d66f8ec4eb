"""A released layer's weights as inputs of the ops: DeepSeek-V3.2, GLM-5 and their like.

The ops rotate interleaved pairs, scale by (L + R)^-.5 and normalise with an epsilon of 1e-5. A
released layer may want another rope order in its indexer, another scale and another epsilon: all
three are folded into the weights. README.md has the names and shapes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from .ops import RMS_EPSILON
from .weight_order import INDEXER_WEIGHTS, LANES, MLA_WEIGHTS, to_nz

IndexRope = Literal["half_split", "interleaved"]

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
_STATE_NAMES = (
    "q_a_proj.weight",
    "q_a_layernorm.weight",
    "q_b_proj.weight",
    "kv_a_proj_with_mqa.weight",
    "kv_a_layernorm.weight",
    "kv_b_proj.weight",
    "indexer.wq_b.weight",
    "indexer.wk.weight",
    "indexer.k_norm.weight",
    "indexer.k_norm.bias",
    "indexer.weights_proj.weight",
)


@dataclass(frozen=True)
class LayerWeights:
    """One layer's weights under the ops' argument names, and what follows the ops.

    ``npu_sparse_attention_pto`` takes ``**mla, **indexer``, ``npu_mla_prolog`` takes ``**mla`` and
    ``npu_indexer_prolog`` ``**indexer``. The layer's output is
    ``o_proj(torch.einsum("bsnl,nvl->bsnv", out, w_uv).flatten(2))``.
    """

    w_dq: Tensor
    w_uq_qr: Tensor
    w_uk: Tensor
    w_dkv_kr: Tensor
    gamma_cq: Tensor
    gamma_ckv: Tensor
    w_idx_qb: Tensor
    w_idx_k: Tensor
    w_idx_proj: Tensor
    in_gamma_k: Tensor
    in_beta_k: Tensor
    w_uv: Tensor
    """[N1, V, L]: from a head's latent output to its values. No op takes it."""

    @property
    def mla(self) -> dict[str, Tensor]:
        """The weights of ``npu_mla_prolog``."""
        return {name: getattr(self, name) for name in MLA_WEIGHTS}

    @property
    def indexer(self) -> dict[str, Tensor]:
        """The weights of ``npu_indexer_prolog``."""
        return {name: getattr(self, name) for name in INDEXER_WEIGHTS}


@torch.no_grad()
def convert_weights(
    state: Mapping[str, Tensor],
    *,
    heads: int,
    scale: float,
    index_rope: IndexRope,
    rms_epsilon: float = 1e-6,
    nz: bool = False,
    prefix: str = "",
) -> LayerWeights:
    """Turn an attention layer's state dict into inputs of the ops.

    ``conversion_options`` derives heads, scale and index_rope from a model's config.

    Args:
        state: tensors under transformers' names (``q_a_proj.weight``, ``indexer.wk.weight``, ...),
            all bfloat16, float16 or float32. The norms' parameters and the weight of
            ``indexer.weights_proj`` may be float32 among others. ``o_proj.weight`` is only held
            against ``heads``, if it is there.
        heads: N1, the number of attention heads.
        scale: what the layer multiplies its logits by: (P + R)^-.5, times mscale^2 under YaRN.
        index_rope: how the layer's indexer pairs the dims that it rotates: i with i + R/2
            ("half_split", DeepSeek-V3.2) or 2i with 2i + 1 ("interleaved", GLM-5).
        rms_epsilon: of the layer's q_a_layernorm and kv_a_layernorm. For 16-bit weights it is met
            to within a factor of 2, so that no weight is rounded for it: 1e-6 becomes 6.25e-7.
        nz: bring the six matrices into fractal NZ order.
        prefix: what stands before every name in ``state``, such as "model.layers.0.self_attn.".

    Returns:
        New tensors on the devices of the old ones. Products are taken in fp32 and rounded once.

    Raises:
        ValueError: a name is missing, a shape or dtype does not fit, or a weight is quantised.
    """
    if index_rope not in get_args(IndexRope):
        raise _error("index_rope", f"must be 'half_split' or 'interleaved', got {index_rope!r}")
    for name, value in (("heads", heads), ("scale", scale), ("rms_epsilon", rms_epsilon)):
        if not (value > 0 and math.isfinite(value)):
            raise _error(name, f"must be positive, got {value}")
    layer = _Layer(state, prefix)
    sizes = _Sizes.of(layer, heads)

    to_epsilon = _epsilon_factor(rms_epsilon, layer.dtype)
    to_scale = scale * (sizes.latent + sizes.rope) ** 0.5
    up = layer["kv_b_proj.weight"].view(heads, sizes.nope + sizes.value, sizes.latent)
    down = layer["kv_a_proj_with_mqa.weight"]
    latent_rows = _scaled(down[: sizes.latent], to_epsilon)
    order = _index_order(sizes, index_rope).to(down.device)
    index_query = layer["indexer.wq_b.weight"].view(-1, sizes.index, sizes.query_rank)

    matrices = {
        "w_dq": _scaled(layer["q_a_proj.weight"], to_epsilon),
        "w_uq_qr": _scaled(layer["q_b_proj.weight"], to_scale),
        "w_dkv_kr": torch.cat((latent_rows, down[sizes.latent :])),
        "w_idx_qb": index_query[:, order].flatten(0, 1),
        "w_idx_k": layer["indexer.wk.weight"][order],
        "w_idx_proj": layer["indexer.weights_proj.weight"].to(layer.dtype),
    }
    transposed = {name: _transposed(name, rows, nz) for name, rows in matrices.items()}
    return LayerWeights(
        **transposed,
        w_uk=up[:, : sizes.nope].clone(memory_format=torch.contiguous_format),
        w_uv=up[:, sizes.nope :].clone(memory_format=torch.contiguous_format),
        gamma_cq=layer["q_a_layernorm.weight"].clone(),
        gamma_ckv=layer["kv_a_layernorm.weight"].clone(),
        in_gamma_k=layer["indexer.k_norm.weight"][order],
        in_beta_k=layer["indexer.k_norm.bias"][order],
    )


def _error(argument: str, text: str) -> ValueError:
    return ValueError(f"convert_weights: argument '{argument}' {text}")


class _Layer:
    """The tensors of one layer by their names without prefix: all there, none quantised."""

    def __init__(self, state: Mapping[str, Tensor], prefix: str) -> None:
        self._state, self._prefix = state, prefix
        self._check_names()
        self.dtype = self["q_a_proj.weight"].dtype
        for name in _STATE_NAMES:
            self._check_dtype(name)
        for name in ("q_a_proj.bias", "kv_a_proj_with_mqa.bias"):
            if name in self:
                raise _error(
                    "state",
                    f"has '{prefix}{name}', but the ops add no bias there; run the layer by"
                    " transformers",
                )

    def __getitem__(self, name: str) -> Tensor:
        return self._state[self._prefix + name]

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._state

    def shape(self, name: str, *expected: int | None) -> tuple[int, ...]:
        """The shape of a tensor, refused where it is not as expected; None: any size."""
        shape = tuple(self[name].shape)
        if len(shape) != len(expected) or any(
            want not in (None, size) for want, size in zip(expected, shape, strict=True)
        ):
            wanted = ", ".join("*" if size is None else str(size) for size in expected)
            raise self.error(name, f"must have the shape [{wanted}], got {list(shape)}")
        return shape

    def error(self, name: str, text: str) -> ValueError:
        return _error("state", f"'{self._prefix}{name}' {text}")

    def _check_names(self) -> None:
        missing = [name for name in _STATE_NAMES if name not in self]
        if not missing:
            return
        text = "has no " + ", ".join(f"'{self._prefix}{name}'" for name in missing)
        first = "q_a_proj.weight"
        elsewhere = [name for name in self._state if name.endswith(first)]
        if first in missing and elsewhere:
            text += f"; it has '{elsewhere[0]}': pass prefix='{elsewhere[0].removesuffix(first)}'"
        if all(name.startswith("indexer.") for name in missing):
            text += "; a layer that takes another one's selection has no indexer of its own"
        raise _error("state", text)

    def _check_dtype(self, name: str) -> None:
        scale = name + "_scale_inv"
        dtype = self[name].dtype
        if scale in self:
            raise self.error(
                name,
                f"is quantised: dequantise it first, that is, multiply its blocks by"
                f" '{self._prefix}{scale}', and leave the scales out of the state",
            )
        if dtype not in _DTYPES:
            raise self.error(
                name,
                f"must be bfloat16, float16 or float32, got {dtype}; dequantise quantised weights"
                " first",
            )
        own = self[name].dim() == 1 or name == "indexer.weights_proj.weight"
        if dtype != self.dtype and not (own and dtype == torch.float32):
            allowed = f"{self.dtype} or torch.float32" if own else f"{self.dtype}"
            raise self.error(
                name, f"must be {allowed}, as '{self._prefix}q_a_proj.weight' is, got {dtype}"
            )


@dataclass(frozen=True)
class _Sizes:
    """The sizes of a layer, in README.md: Q, P, V, L, R and D."""

    query_rank: int
    nope: int
    value: int
    latent: int
    rope: int
    index: int

    @staticmethod
    def of(layer: _Layer, heads: int) -> _Sizes:
        """Read the sizes from the tensors, and hold every tensor against them."""
        query_rank, hidden = layer.shape("q_a_proj.weight", None, None)
        layer.shape("q_a_layernorm.weight", query_rank)
        (latent,) = layer.shape("kv_a_layernorm.weight", None)
        down, _ = layer.shape("kv_a_proj_with_mqa.weight", None, hidden)
        rope = down - latent
        if rope < 2 or rope % 2 != 0:
            raise layer.error(
                "kv_a_proj_with_mqa.weight",
                f"must have {latent} rows and an even number for the rope, got {down}",
            )
        query, _ = layer.shape("q_b_proj.weight", None, query_rank)
        nope = _per_head(layer, "q_b_proj.weight", query, heads, rope)
        expanded, _ = layer.shape("kv_b_proj.weight", None, latent)
        value = _per_head(layer, "kv_b_proj.weight", expanded, heads, nope)
        # The one tensor that shows a wrong number of heads which divides the right one.
        if "o_proj.weight" in layer:
            layer.shape("o_proj.weight", hidden, heads * value)

        index, _ = layer.shape("indexer.wk.weight", None, hidden)
        layer.shape("indexer.k_norm.weight", index)
        layer.shape("indexer.k_norm.bias", index)
        if index < rope:
            raise layer.error(
                "indexer.wk.weight", f"must have at least {rope} rows, the rope's, got {index}"
            )
        index_heads, _ = layer.shape("indexer.weights_proj.weight", None, hidden)
        layer.shape("indexer.wq_b.weight", index_heads * index, query_rank)
        return _Sizes(query_rank, nope, value, latent, rope, index)


def _per_head(layer: _Layer, name: str, rows: int, heads: int, taken: int) -> int:
    """How many rows of each head are left after ``taken`` ones."""
    if rows % heads != 0 or rows // heads <= taken:
        raise layer.error(
            name, f"must have more than {taken} rows for each of {heads} heads, got {rows} in all"
        )
    return rows // heads - taken


def _epsilon_factor(epsilon: float, dtype: torch.dtype) -> float:
    """A factor of a norm's input that makes RMS_EPSILON weigh as ``epsilon`` did without it."""
    factor = (RMS_EPSILON / epsilon) ** 0.5
    # In 16 bits a power of two, which rounds no weight.
    return factor if dtype == torch.float32 else 2.0 ** round(math.log2(factor))


def _index_order(sizes: _Sizes, index_rope: IndexRope) -> Tensor:
    """Where each dim of an index head comes from: de-interleaving undoes it."""
    order = torch.arange(sizes.index, device="cpu")
    if index_rope == "half_split":
        order[: sizes.rope] = torch.arange(sizes.rope, device="cpu").view(2, -1).T.flatten()
    return order


def _scaled(weight: Tensor, factor: float) -> Tensor:
    return (weight.float() * factor).to(weight.dtype)


def _transposed(name: str, rows: Tensor, nz: bool) -> Tensor:
    """[K, N] or its NZ order from the [N, K] of torch's linear layers; always a copy."""
    if not nz:
        return rows.T.clone(memory_format=torch.contiguous_format)
    if rows.element_size() != 2:
        raise _error("nz", f"needs weights of bfloat16 or float16, got {rows.dtype}")
    if len(rows) % LANES != 0:
        raise _error("nz", f"needs a multiple of {LANES} columns in {name}, got {len(rows)}")
    return to_nz(rows.T)
