"""A process that ends or hangs while a plugin loads names the plugin, and how to do without it.

tests/bad_plugins has libraries that do so.
"""

from __future__ import annotations

import pytest
from loading import END_A_HANG
from plugin_factory import Site

ENDS = {
    "abort": "import os; os.abort()",
    "fatal signal": "import os, signal; os.kill(os.getpid(), signal.SIGBUS)",
    "exit": "import ctypes; ctypes.CDLL(None).exit(0)",
}
IMPORT = "import custom_pypto.core\nprint('went on')"
NAMED = "the plugin 'broken' is loading; CUSTOM_PYPTO_DISABLE=broken skips it"


@pytest.mark.parametrize("code", ENDS.values(), ids=ENDS)
def test_module_that_ends_the_process_is_named(site: Site, code: str) -> None:
    site.install("broken", code)
    done = site.start(IMPORT)
    assert "went on" not in done.stdout
    assert NAMED in done.stderr


def test_a_plugin_that_hangs_is_named_with_where(site: Site) -> None:
    site.install("broken", "import threading\nthreading.Event().wait()")
    done = site.start(END_A_HANG, IMPORT)
    assert NAMED in done.stderr
    assert "custom_pypto_broken/__init__.py" in done.stderr


def test_nothing_is_left_once_the_plugins_have_loaded(site: Site) -> None:
    site.install("healthy")
    done = site.start(
        """
        import faulthandler, os, signal, sys
        files = len(os.listdir("/proc/self/fd"))
        import torch, custom_pypto.core, ctypes
        torch.ops.custom_pypto.healthy
        sys.stderr.write(str([faulthandler.is_enabled(), len(os.listdir("/proc/self/fd")) - files]))
        sys.stderr.flush()
        ctypes.CDLL(None).exit(0)
        """
    )
    assert done.stderr == "[False, 0]"


def test_handlers_of_the_user_stay(site: Site) -> None:
    site.install("healthy")
    given = site.run(
        "import faulthandler; faulthandler.enable()",
        "import custom_pypto.core; give(faulthandler.is_enabled())",
    )
    assert given


NO_ERROR_STREAM = {
    "none": "sys.__stderr__ = None",
    "closed": "sys.__stderr__ = open(os.devnull); sys.__stderr__.close()",
    "closed descriptor": "os.close(2)",
    "descriptor for reading": "os.dup2(os.open(os.devnull, os.O_RDONLY), 2)",
    "object of a program that embeds Python": "sys.__stderr__ = object()",
}


@pytest.mark.parametrize("change", NO_ERROR_STREAM.values(), ids=NO_ERROR_STREAM)
def test_a_process_without_standard_error_loads(site: Site, change: str) -> None:
    site.install("healthy")
    given = site.run(
        f"import os, sys, torch\n{change}",
        "import custom_pypto.core as core; give(core.plugins()[0].status)",
    )
    assert given == "loaded"
