"""The indexer with a clock around its top-k, compiled from the plugin's own sources.

The top-k cannot be timed by itself: its time depends on the scores of each row, and on whether they
are in the caches.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from custom_pypto.core.library import Library
from custom_pypto_build import plugin_library
from torch import Tensor

PLUGIN = Path(__file__).parents[1] / "plugins" / "lightning_indexer"
CLOCKED = Path(__file__).parent / "clocked"


@functools.cache
def clocked_indexer() -> Callable[..., tuple[Tensor, float]]:
    """Compile and load the op; it returns its positions, and the seconds of all its selections.

    Arguments: query [B, S1, N1, D], key [blocks, block_size, N2, D], weights [B, S1, N1], lengths
    [B], block_table [B, M], sparse_count. Raises custom_pypto_build.errors.BuildError when it does
    not compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "lightning_indexer")
        shutil.copytree(PLUGIN, project, ignore=shutil.ignore_patterns("build"))
        shutil.rmtree(project / "csrc" / "npu")
        shutil.copy(CLOCKED / "lightning_indexer.cpp", project / "csrc")
        with (project / "ops.toml").open("a", encoding="utf-8") as ops:
            ops.write((CLOCKED / "ops.toml").read_text(encoding="utf-8"))
        Library(plugin_library.build_project(project, project / "build")).register()
    op: Callable[..., tuple[Tensor, float]] = (
        torch.ops.custom_pypto.npu_lightning_indexer_pto_clocked
    )
    return op
