"""Plugins that are installed after core was imported."""

from plugin_factory import Site

START = """
import sys, warnings
caught = warnings.catch_warnings(record=True).__enter__()
warnings.simplefilter("always")
import custom_pypto.core as core, torch
def come(folder):
    sys.path.append(f"{sys.path[0]}/{folder}")
    core.load_new()
    return {p.name: p.status for p in core.plugins()}
"""


def test_what_came_is_loaded_beside_the_others(site: Site) -> None:
    """So does one that wants an op that is there: it is rejected."""
    site.install("first")
    site.other("later").install("second", ops=["two"])
    site.other("wanting").install("third", ops=["first"])
    given = site.run(
        START,
        """
        before = [torch.ops.custom_pypto.first, hasattr(torch.ops.custom_pypto, "two")]
        states = [come("later"), come("wanting"), come("wanting")]
        give([
            before[1], states, torch.ops.custom_pypto.two(torch.ones(2)).tolist(),
            before[0] is torch.ops.custom_pypto.first, [op.name for op in core.ops()],
            [str(w.message) for w in caught],
        ])
        """,
    )
    *given, (message,) = given
    loaded = {"first": "loaded", "second": "loaded"}
    rejected = {**loaded, "third": "rejected"}
    assert given == [False, [loaded, rejected, rejected], [1, 1], True, ["first", "two"]]
    assert "each provide the op 'first'" in message


def test_a_plugin_loads_when_what_it_needs_comes(site: Site) -> None:
    """One that failed is not tried again."""
    site.install("ant", requires_ops=["zebra"])
    site.install("broken", "raise ValueError('no')")
    site.other("later").install("zebra")
    given = site.run(
        START,
        """
        before = {p.name: p.status for p in core.plugins()}
        give([before, come("later"), len(caught)])
        """,
    )
    assert given == [
        {"broken": "failed", "ant": "rejected"},
        {"zebra": "loaded", "ant": "loaded", "broken": "failed"},
        2,
    ]


def test_a_plugin_that_is_replaced_or_removed_while_it_is_loaded_stays(site: Site) -> None:
    installed = site.install("first")
    given = site.run(
        START,
        f"""
        import os, shutil
        old, package = {str(installed.dist_info)!r}, {str(installed.package)!r}
        os.rename(old, new := old.replace("0.1.0", "0.2.0"))
        states = [come("nowhere")]
        for each in (new, package): shutil.rmtree(each)
        give([*states, come("nowhere"), [p.version for p in core.plugins()], len(caught)])
        """,
    )
    assert given == [{"first": "loaded"}, {"first": "loaded"}, ["0.1.0"], 0]


REENTERED = (
    "PluginError: a plugin called load_new() while it was loaded; call it after the import of"
    " custom_pypto.core, or install the other plugin as one of its own"
)
# Code that would wait for ever ends sooner than the test server's own limit.
LIMIT = "import faulthandler; faulthandler.dump_traceback_later(20, exit=True)"


def test_a_plugin_that_calls_it_while_it_loads_fails(site: Site) -> None:
    site.install("first")
    site.other("later").install("second", "import custom_pypto.core; custom_pypto.core.load_new()")
    given = site.run(
        LIMIT,
        START,
        """
        states = come("later")
        reason = [p.reason for p in core.plugins() if p.name == "second"]
        core.load_new()
        give([states, reason])
        """,
    )
    states, (reason,) = given
    assert states == {"first": "loaded", "second": "failed"}
    assert REENTERED in reason
