"""The options of this package in vLLM's --additional-config."""

from __future__ import annotations

from typing import Any

INDEX_CACHE = "custom_pypto_index_cache"
_KINDS = ("auto", "int8")


def index_cache_kind(config: Any) -> str:
    """Return how index keys are cached: "auto" (in the model's dtype) or "int8".

    Raises:
        ValueError: the option has another value.
    """
    options = config.additional_config
    kind = options.get(INDEX_CACHE, "auto") if isinstance(options, dict) else "auto"
    if kind not in _KINDS:
        raise ValueError(
            f"custom_pypto_vllm: {INDEX_CACHE} in --additional-config must be one of"
            f" {', '.join(map(repr, _KINDS))}, got {kind!r}"
        )
    return str(kind)
