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
