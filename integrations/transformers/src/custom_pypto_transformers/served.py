"""The classes of transformers that are replaced, and their replacements."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from torch import nn

from .attention import LatentAttention
from .indexer import FusedIndexer


class Family(NamedTuple):
    """A model family of transformers.

    Attributes:
        module: its folder in transformers.models.
        prefix: the prefix of its classes' names.
        rope: the function by which its indexer rotates.
    """

    module: str
    prefix: str
    rope: str


# Families whose layers compute what DeepSeek-V3.2's or GLM-5's do, up to the order of the rope.
FAMILIES = (
    Family("deepseek_v32", "DeepseekV32", "apply_rotary_pos_emb"),
    Family("glm_moe_dsa", "GlmMoeDsa", "apply_rotary_pos_emb_interleave"),
    Family("axk2", "AXK2", "apply_rotary_pos_emb"),
)


class _SameKind(type):
    """Makes isinstance(x, ours) true for every x of transformers' own class.

    transformers records attention weights by a table of the model class, which contains our class
    also for models that were made without it.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.original)  # type: ignore[attr-defined]


def replacements() -> dict[str, type[nn.Module]]:
    """{name of transformers' class: ours}, for the families that the installed transformers has."""
    found: dict[str, type[nn.Module]] = {}
    for family in FAMILIES:
        try:
            module = importlib.import_module(
                f"transformers.models.{family.module}.modeling_{family.module}"
            )
        except ModuleNotFoundError:
            continue
        rope = staticmethod(getattr(module, family.rope))
        for part, mixin in (("Attention", LatentAttention), ("Indexer", FusedIndexer)):
            original = getattr(module, family.prefix + part)
            members: dict[str, Any] = {"original": original, "rope": rope, "__module__": __name__}
            ours: Any = _SameKind(original.__name__, (mixin, original), members)
            # pickle looks for it here.
            globals()[original.__name__] = found[original.__name__] = ours
    return found
