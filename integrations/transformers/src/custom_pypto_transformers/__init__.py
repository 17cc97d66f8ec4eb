"""Models with sparse attention (DeepSeek, GLM, and others) in transformers, on custom_pypto's ops.

Import it, then make the model with ``attn_implementation="custom_pypto"``, or set that later with
``model.set_attn_implementation``. Under another implementation models run transformers' own code.
"""

from __future__ import annotations

from importlib.metadata import version

from .requirements import INSTALL, TESTED, check_requirements

check_requirements()

try:
    from transformers import AttentionInterface, AttentionMaskInterface

    from .attention import attend
    from .growing_cache import GrowingCache
    from .indexer_loss import indexer_losses
    from .key_ranges import make_key_ranges
    from .linear import use_linear
    from .served import serve_families
    from .support import NAME

    serve_families()
except (AttributeError, ImportError) as error:
    raise ImportError(
        f"custom_pypto_transformers: transformers {version('transformers')} is laid out differently"
        f" from {TESTED}, with which this was tested ({error}): {INSTALL}"
    ) from error

__all__ = ["GrowingCache", "indexer_losses", "use_linear"]

AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, make_key_ranges)
