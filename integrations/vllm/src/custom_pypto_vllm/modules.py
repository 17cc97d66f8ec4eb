"""The parts of vLLM's attention layer, with ours in place of those that no CPU can run."""

from __future__ import annotations

import dataclasses
from typing import Any

from .indexer import OpIndexer
from .rotary import flat_rotary


def replace_modules(modules: Any) -> Any:
    """Return the MLAModules of a layer of a served model."""
    return dataclasses.replace(
        modules,
        rotary_emb=flat_rotary(modules.rotary_emb),
        indexer=None if modules.indexer is None else OpIndexer(modules.indexer),
        indexer_rotary_emb=flat_rotary(modules.indexer_rotary_emb),
    )
