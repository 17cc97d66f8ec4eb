"""DeepSeek-V3.2 and GLM-5 in transformers, on the sparse attention ops of custom_pypto.

Import it, then make the model with ``attn_implementation="custom_pypto"``, or set that later with
``model.set_attn_implementation``. Every other model and implementation is left as it was.
"""

from __future__ import annotations

from .requirements import check_requirements, unknown_layout

check_requirements()

try:
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.monkey_patching import register_patch_mapping

    from .attention import attend
    from .growing_cache import GrowingCache
    from .indexer_loss import indexer_losses
    from .key_ranges import make_key_ranges
    from .served import replacements
    from .support import NAME

    _replacements = replacements()
except (AttributeError, ImportError) as error:
    raise unknown_layout(error) from error

__all__ = ["GrowingCache", "indexer_losses"]

AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, make_key_ranges)
register_patch_mapping(_replacements, overwrite=True)
