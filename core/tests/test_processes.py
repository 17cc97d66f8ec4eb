"""Processes that fork, are forked, or are started by multiprocessing have the parent's plugins."""

import pytest
from loading import FAKES
from plugin_factory import Site

# A module of the test, which processes that begin anew import.
WORK = """
import custom_pypto.core as core, torch
def look(_=None):
    result = torch.ops.custom_pypto.first(torch.ones(1)).item()
    return [[[p.name, p.status] for p in core.plugins()], [op.name for op in core.ops()], result]
"""
START = """
import multiprocessing, sys
with multiprocessing.get_context({!r}).Pool(1) as pool:
    import work
    give(pool.map(work.look, [0]))
"""
LOOKED = [[["first", "loaded"]], ["first"], 1]


@pytest.mark.parametrize(
    ("method", "has_core"),
    [("fork", True), ("fork", False), ("forkserver", False), ("spawn", True)],
)
def test_process_of_multiprocessing_has_plugins(site: Site, method: str, has_core: bool) -> None:
    site.install("first", FAKES)
    (site.folder / "work.py").write_text(WORK, encoding="utf-8")
    parent = "import work; work.look()" if has_core else ""
    assert site.run(parent, START.format(method)) == [LOOKED]
