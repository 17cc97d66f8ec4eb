"""The indexer with a clock around its top-k, compiled from the plugin's own sources.

The top-k cannot be timed by itself: its time depends on the scores of each row, and on whether they
are in the caches.
"""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from custom_pypto.core.library import Library
from custom_pypto_build import plugin_library
from custom_pypto_build.settings import Source, read_settings
from torch import Tensor

PLUGIN = Path(__file__).parents[1] / "plugins" / "lightning_indexer"
CLOCKED = Path(__file__).parent / "clocked" / "lightning_indexer.cpp"
# The source that it replaces.
_OWN = "csrc/lightning_indexer.cpp"


@functools.cache
def clocked_indexer() -> Callable[..., tuple[Tensor, float]]:
    """Compile and load the op; it returns its positions, and the seconds of all its selections.

    Arguments: query [B, S1, N1, D], key [blocks, block_size, N2, D], weights [B, S1, N1], lengths
    [B], block_table [B, M], sparse_count. Raises custom_pypto_build.errors.BuildError when it does
    not compile.
    """
    settings = read_settings(PLUGIN)
    kept = [source for source in settings.sources if source.path != _OWN]
    settings = dataclasses.replace(settings, sources=(*kept, Source(str(CLOCKED), (), None)))
    with tempfile.TemporaryDirectory() as folder:
        Library(plugin_library.build(settings, Path(folder))).register()
    op: Callable[..., tuple[Tensor, float]] = (
        torch.ops.custom_pypto.npu_lightning_indexer_pto_clocked
    )
    return op
