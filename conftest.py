"""What every test of this repository shares."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
SLOWEST = (
    "plugins/sparse_attention/tests/test_conformance.py",
    "plugins/lightning_indexer/tests/test_conformance.py",
    "tests/test_wrong_kernels.py",
    "plugins/sparse_flash_mla/tests/test_conformance.py",
    "plugins/mhc/tests/test_conformance.py",
    "tests/test_third_party.py",
    "tests/test_tutorial.py",
    "plugins/compressor/tests/test_conformance.py",
    "tests/test_new_command.py",
    "tests/test_compiled_slices.py",
    "builder/tests/test_build_check.py",
    "builder/tests/test_build_install.py",
    "testing/tests/test_fuzzing.py",
    "tests/test_commands.py",
    "tests/test_install.py",
    "testing/tests/test_conformance.py",
)
"""The files that take longest: `pytest --durations=0` shows how long."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Longest files first, so that none is left to one of pytest's processes in the end.

    A command line that names files or folders chooses the order, too.
    """
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    ranks = {ROOT / name: rank for rank, name in enumerate(SLOWEST)}
    assert all(path.exists() for path in ranks)
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_collection_finish() -> None:
    """Keep the garbage collector and Dynamo from work that no test needs."""
    if guards := sys.modules.get("torch._dynamo.guards"):
        # For its log, Dynamo would time the guards of each graph with cold caches.
        vars(guards)["profile_guard_manager"] = lambda *_: 0.0
    gc.collect()
    gc.freeze()
