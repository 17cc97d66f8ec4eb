"""Options of ``convert_weights`` from a model's config."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypedDict

from .convert_weights import IndexRope

# How a model's indexer pairs the dims that it rotates, by ``model_type``.
_INDEX_ROPES: dict[str, IndexRope] = {"deepseek_v32": "half_split", "glm_moe_dsa": "interleaved"}


class ConversionOptions(TypedDict):
    """Arguments of ``convert_weights``."""

    heads: int
    scale: float
    index_rope: IndexRope


def conversion_options(config: object) -> ConversionOptions:
    """The arguments of ``convert_weights`` that follow from a model's config.

    Args:
        config: DeepseekV32Config or GlmMoeDsaConfig of transformers, or what a config.json holds.

    Returns:
        Keyword arguments. ``scale`` is (P + R)^-.5; under a scaled rope with mscale_all_dim it is
        multiplied by m^2, m = 0.1 * mscale_all_dim * ln(factor) + 1.

    Raises:
        ValueError: the config lacks something, or is of another type of model.
    """
    model_type = _read(config, "model_type")
    if model_type not in _INDEX_ROPES:
        raise ValueError(
            f"conversion_options: argument 'config' must have a model_type of"
            f" {' or '.join(map(repr, _INDEX_ROPES))}, got {model_type!r}; for another model pass"
            " heads, scale and index_rope to convert_weights"
        )
    head_size = _read(config, "qk_nope_head_dim") + _read(config, "qk_rope_head_dim")
    return {
        "heads": _read(config, "num_attention_heads"),
        "scale": head_size**-0.5 * _mscale(config) ** 2,
        "index_rope": _INDEX_ROPES[model_type],
    }


def _mscale(config: object) -> float:
    # A config.json from before transformers 5 has rope_scaling, and another name for its type.
    rope = _get(config, "rope_parameters") or _get(config, "rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    weight = rope.get("mscale_all_dim")
    if kind == "default" or not weight:
        return 1.0
    factor = rope.get("factor")
    if factor is None:
        raise ValueError(
            "conversion_options: argument 'config' has a rope with mscale_all_dim but no factor"
        )
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def _get(config: object, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def _read(config: object, name: str) -> Any:
    value = _get(config, name)
    if value is None:
        raise ValueError(f"conversion_options: argument 'config' has no {name}")
    return value
