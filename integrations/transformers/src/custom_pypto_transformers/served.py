"""The classes of transformers that are replaced, and their replacements."""

from __future__ import annotations

import importlib
from typing import Any

from torch import nn

from .attention import LatentAttention
from .indexer import FusedIndexer

# Families whose layers compute the same as DeepSeek-V3.2's, up to the order of the rope: the folder
# in transformers.models, the prefix of the classes, and the function that rotates.
FAMILIES = (
    ("deepseek_v32", "DeepseekV32", "apply_rotary_pos_emb"),
    ("glm_moe_dsa", "GlmMoeDsa", "apply_rotary_pos_emb_interleave"),
    ("axk2", "AXK2", "apply_rotary_pos_emb"),
)


class _SameKind(type):
    """Makes isinstance(x, ours) true for every x of transformers' own class.

    transformers records attention weights by a table of the model class. It contains our class even
    for models that were made without it.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.original)  # type: ignore[attr-defined]


def replacements() -> dict[str, type[nn.Module]]:
    """{name of transformers' class: ours}, for the families that the installed transformers has."""
    found: dict[str, type[nn.Module]] = {}
    for folder, prefix, rotate in FAMILIES:
        try:
            module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
        except ModuleNotFoundError:
            continue
        rope = staticmethod(getattr(module, rotate))
        for part, mixin in (("Attention", LatentAttention), ("Indexer", FusedIndexer)):
            original = getattr(module, prefix + part)
            members: dict[str, Any] = {"original": original, "rope": rope, "__module__": __name__}
            ours: Any = _SameKind(original.__name__, (mixin, original), members)
            # pickle looks for it here.
            globals()[original.__name__] = found[original.__name__] = ours
    return found
