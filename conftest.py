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
    "plugins/sparse_flash_mla/tests/test_conformance.py",
    "plugins/mhc/tests/test_conformance.py",
    "tests/test_wrong_kernels.py",
    "tests/test_third_party.py",
    "tests/test_tutorial.py",
    "tests/test_new_command.py",
    "plugins/compressor/tests/test_conformance.py",
    "tests/test_compiled_slices.py",
    "builder/tests/test_build_check.py",
    "builder/tests/test_build_install.py",
    "tests/test_commands.py",
    "tests/test_install.py",
)
"""The files that take longest: `pytest --durations=0` shows how long."""
GRAPHS = (
    *("test_passes_opcheck", "test_compiles", "test_compiles_with_inductor"),
    "test_exports_with_dynamic_sizes",
)
"""Tests of the suite. Plain `tox` gives them one graph of each op, `tox -e slow` the others."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow. Longest files first, so that none is left to one process in the end.

    A command line that names files or folders chooses the order, too.
    """
    tested = set()
    for item in items:
        name = getattr(item, "originalname", "")
        cases = item.callspec.params.values() if name in GRAPHS else ()
        compiled = {
            (name, each.op.name, each.op.device)
            for each in cases
            # test_compiles leaves calls of two sizes to the test with inductor.
            if hasattr(each, "op") and (name != "test_compiles" or each.sample.resized is None)
        }
        if name == "test_kernels_of_every_isa" or (compiled and compiled <= tested):
            item.add_marker("slow")
        tested |= compiled
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
