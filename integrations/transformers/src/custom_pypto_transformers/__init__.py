"""DeepSeek-V3.2 and GLM-5 in transformers, on the sparse attention ops of custom_pypto.

Import it, then make the model with ``attn_implementation="custom_pypto"``, or set that later with
``model.set_attn_implementation``. Every other model and implementation is left as it was.
"""

from __future__ import annotations

from .requirements import check_requirements

check_requirements()

from transformers import AttentionInterface, AttentionMaskInterface  # noqa: E402
from transformers.monkey_patching import register_patch_mapping  # noqa: E402

from .attention import attend  # noqa: E402
from .growing_cache import GrowingCache  # noqa: E402
from .key_ranges import make_key_ranges  # noqa: E402
from .served import replacements  # noqa: E402
from .support import NAME  # noqa: E402

__all__ = ["GrowingCache"]

AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, make_key_ranges)
register_patch_mapping(replacements(), overwrite=True)
