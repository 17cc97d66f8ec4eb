"""Loading in processes that fork, and core that is imported again."""

from __future__ import annotations

from plugin_factory import Site


def test_forked_process_can_use_and_load(site: Site) -> None:
    site.install("first")
    given = site.load("""
        import os, sys
        child = os.fork()
        if child == 0:
            result = ops.first(torch.ones(1)).item()
            os._exit(int(result) if core.ops() else 9)
        os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        """)
    assert given == 1


def test_plugin_may_fork_while_it_is_loaded(site: Site) -> None:
    site.install("first", "import os; child = os.fork()")
    given = site.start(
        """
        import os, sys, custom_pypto.core as core, custom_pypto_first
        if custom_pypto_first.child == 0:
            os._exit(0 if core.plugins()[0].status == "loaded" else 9)
        give(os.waitstatus_to_exitcode(os.waitpid(custom_pypto_first.child, 0)[1]))
        """
    )
    assert (given.stdout, given.stderr) == ("0\n", "")


def test_reload_of_core_loads_nothing_twice(site: Site) -> None:
    site.install("first")
    assert site.load("""
        import importlib
        importlib.reload(core)
        [p.status for p in core.plugins()]
        """) == ["loaded"]
