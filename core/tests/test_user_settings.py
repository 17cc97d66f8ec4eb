"""A plugin that loads leaves to the user what the user has set."""

from __future__ import annotations

import pytest
from loading import FAKES, REPORT, failure_of
from plugin_factory import Site

FINDER = """
import sys
class Finder:
    @staticmethod
    def find_spec(name, path, target=None): raise LookupError("no")
sys.meta_path.insert(0, Finder)
"""
EXITING_FINDER = FINDER.replace('LookupError("no")', "SystemExit(0)")
ODD_FINDER = """
import sys
class Finder:
    def __eq__(self, other): raise SystemExit(0)
    def find_spec(self, name, path, target=None): return None
sys.meta_path[:] = [Finder()]
"""
CHANGES = {
    "a new variable": (
        "import os; os.environ['CUSTOM_PYPTO_CPU_ISA'] = 'nonsense'",
        "changes the variable CUSTOM_PYPTO_CPU_ISA",
    ),
    "the user's variable": (
        "import os; del os.environ['CUSTOM_PYPTO_STRICT']",
        "changes the variable CUSTOM_PYPTO_STRICT",
    ),
    "an empty path": ("import sys; sys.path.clear()", "removes entries of sys.path"),
    "no path": ("import sys; sys.path = None", "removes entries of sys.path"),
    "no list of finders": ("import sys; del sys.meta_path", "removes entries of sys.meta_path"),
    "a finder that compares": (ODD_FINDER, "removes entries of sys.meta_path"),
    "a finder that exits": (
        EXITING_FINDER,
        "puts a finder on sys.meta_path that raises SystemExit: 0",
    ),
    "no environment": ("import os; os.environ = None", "replaces os.environ"),
    "other modules": ("import sys; sys.modules = dict(sys.modules)", "replaces sys.modules"),
    "no finders": ("import sys; sys.meta_path.clear()", "removes entries of sys.meta_path"),
    "a finder that raises": (FINDER, "puts a finder on sys.meta_path that raises LookupError: no"),
}


@pytest.mark.parametrize(("code", "reason"), CHANGES.values(), ids=CHANGES)
def test_a_plugin_that_changes_what_all_use_fails(site: Site, code: str, reason: str) -> None:
    site.install("broken", code)
    site.install("ant")
    variables = {"CUSTOM_PYPTO_STRICT": "0"} if "STRICT" in code else {}
    site.install("healthy", "import colorsys")
    report = site.run(REPORT, **variables)
    assert report["states"] == {"ant": "loaded", "broken": "failed", "healthy": "loaded"}
    assert report["reasons"]["broken"].startswith(f"it {reason}")


def test_what_a_plugin_changed_is_restored(site: Site) -> None:
    site.install("broken", "import os; os.environ['CUSTOM_PYPTO_STRICT'] = '1'")
    code = "import custom_pypto.core; give(os.environ['CUSTOM_PYPTO_STRICT'])"
    assert (
        site.run(
            "import os, warnings; warnings.simplefilter('ignore')", code, CUSTOM_PYPTO_STRICT="0"
        )
        == "0"
    )


def test_filters_of_warnings_stay(site: Site) -> None:
    site.install("broken", "import warnings\nwarnings.simplefilter('error')\nraise LookupError")
    site.install("healthy", "import warnings\nwarnings.warn('not yet', DeprecationWarning)")
    report = site.run(REPORT)
    assert report["states"] == {"broken": "failed", "healthy": "loaded"}


def test_additions_to_the_path_stay(site: Site) -> None:
    site.install("first", "import sys; sys.path.append('/nowhere')")
    assert site.load("__import__('sys').path[-1]") == "/nowhere"


@pytest.mark.parametrize("raised", ["LookupError", "SystemExit"])
def test_an_error_whose_text_cannot_be_read(site: Site, raised: str) -> None:
    # A key of what a hook returns is asked for its text outside of the plugin's own code.
    code = f"""
    from custom_pypto_plugin import hookimpl
    class Odd(Exception):
        def __str__(self): raise {raised}
    class Key:
        def __repr__(self): raise Odd
    @hookimpl
    def custom_pypto_fakes(): return {{Key(): None}}
    """
    site.install("broken", code)
    assert f"Odd, whose text cannot be read: {raised} (" in failure_of(site)


def test_load_new_in_a_plugin_is_refused(site: Site) -> None:
    site.install("broken", "import custom_pypto.core as core; core.load_new()")
    assert "PluginError: a plugin called load_new() while it was loaded" in failure_of(site)


def test_modules_of_core_stay(site: Site) -> None:
    site.install("broken", "import sys; del sys.modules['custom_pypto_plugin']")
    site.install("first", FAKES)
    report = site.run(REPORT)
    assert report["states"] == {"broken": "failed", "first": "loaded"}
    assert report["reasons"]["broken"].startswith(
        "it removes modules of core or plugins from sys.modules"
    )
