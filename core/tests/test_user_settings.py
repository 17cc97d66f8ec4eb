"""A plugin that loads leaves to the user what the user has set; tests/bad_plugins has others."""

from __future__ import annotations

from loading import REPORT
from plugin_factory import Site


def test_a_plugin_that_removes_a_variable_of_the_user_fails(site: Site) -> None:
    site.install("broken", "import os; del os.environ['CUSTOM_PYPTO_STRICT']")
    site.install("healthy", "import colorsys")
    report = site.run(REPORT, CUSTOM_PYPTO_STRICT="0")
    assert report["states"] == {"broken": "failed", "healthy": "loaded"}
    assert report["reasons"]["broken"].startswith("it changes the variable CUSTOM_PYPTO_STRICT")


EXITING_FINDER = """
import sys
class Finder:
    @staticmethod
    def find_spec(name, path, target=None): raise SystemExit(0)
sys.meta_path.insert(0, Finder)
"""
ODD_FINDER = """
import sys
class Finder:
    def __eq__(self, other): raise SystemExit(0)
    def find_spec(self, name, path, target=None): return None
sys.meta_path[:] = [Finder()]
"""
# A key of what a hook returns is asked for its text outside of the plugin's own code.
ODD_ERROR = """
from custom_pypto_plugin import hookimpl
class Odd(Exception):
    def __str__(self): raise SystemExit
class Key:
    def __repr__(self): raise Odd
@hookimpl
def custom_pypto_fakes(): return {Key(): None}
"""
CHANGES = {
    "no_path": ("import sys; sys.path = None", "it removes entries of sys.path"),
    "no_finders": ("import sys; del sys.meta_path", "it removes entries of sys.meta_path"),
    "comparing_finder": (ODD_FINDER, "it removes entries of sys.meta_path"),
    "exiting_finder": (
        EXITING_FINDER,
        "it puts a finder on sys.meta_path that raises SystemExit: 0",
    ),
    "no_environment": ("import os; os.environ = None", "it replaces os.environ"),
    "other_modules": ("import sys; sys.modules = dict(sys.modules)", "it replaces sys.modules"),
    "odd_error": (ODD_ERROR, "Odd, whose text cannot be read: SystemExit ("),
}


def test_plugins_that_replace_what_all_use_fail_alone(site: Site) -> None:
    for name, (code, _) in CHANGES.items():
        site.install(name, code)
    site.install("healthy", "import colorsys")
    report = site.run(REPORT)
    assert report["states"] == {**dict.fromkeys(CHANGES, "failed"), "healthy": "loaded"}
    said = {
        name: reason for name, (_, reason) in CHANGES.items() if reason in report["reasons"][name]
    }
    assert said == {name: reason for name, (_, reason) in CHANGES.items()}


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
