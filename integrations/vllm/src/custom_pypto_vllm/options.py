"""The options of this package in vLLM's --additional-config."""

from __future__ import annotations

from typing import Any

_PREFIX = "custom_pypto_"
INDEX_CACHE = f"{_PREFIX}index_cache"
_KINDS = ("auto", "int8")


def index_cache_kind(config: Any) -> str:
    """Return how index keys are cached: "auto" (in the model's dtype) or "int8".

    Raises:
        ValueError: the option has another value, or there is no such option of this package.
    """
    options = config.additional_config if isinstance(config.additional_config, dict) else {}
    for name in options:
        if name.startswith(_PREFIX) and name != INDEX_CACHE:
            raise ValueError(
                f"custom_pypto_vllm: --additional-config has no option {name!r};"
                f" it has {INDEX_CACHE}"
            )
    kind = options.get(INDEX_CACHE, "auto")
    if kind not in _KINDS:
        raise ValueError(
            f"custom_pypto_vllm: {INDEX_CACHE} in --additional-config must be one of"
            f" {', '.join(map(repr, _KINDS))}, got {kind!r}"
        )
    return str(kind)
