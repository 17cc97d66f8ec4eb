"""What a plugin registered is what it declared: the rest is taken back, or refused."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_factory import Site

REPORT = """
import warnings
warnings.simplefilter("ignore")
import custom_pypto.core as core, torch
ops = torch.ops.custom_pypto
def touched(name):
    try: return getattr(ops, name)(torch.full((1,), 2.0)).item()
    except AttributeError as error: return str(error)
give({
    "states": {p.name: p.status for p in core.plugins()},
    "reasons": {p.name: p.reason for p in core.plugins()},
    "results": {name: touched(name) for name in ("ant", "other_op", "zebra")},
})
"""
LIBRARY = """
import torch
library = torch.library.Library("custom_pypto", "FRAGMENT")
"""
# A kernel of the tests' plugins returns its argument, 2; these return 7.
CHANGE = "library.impl('{op}', lambda x: x + 5, '{key}')"
# Ways to change an op of another plugin or to add one: code of the module, or of the library.
PYTHON = {
    "kernel of an op": LIBRARY + CHANGE.format(op="ant", key="CPU"),
    "kernel for another key": LIBRARY + CHANGE.format(op="ant", key="AutogradCPU"),
    "by a function of torch.library": (
        "import torch\ntorch.library.impl('custom_pypto::ant', 'CPU', lambda x: x + 5)"
    ),
    "by a handle of the dispatcher": (
        "import torch\n"
        "library = torch._C._dispatch_library('IMPL', 'custom_pypto', 'CPU', 'nowhere', 1)\n"
        "library.impl('ant', '', lambda x: x + 5)"
    ),
    "kernel of an op that loads later": LIBRARY + CHANGE.format(op="zebra", key="AutogradCPU"),
    "schema of an op that loads later": LIBRARY
    + "library.define('zebra(Tensor x) -> Tensor')\n"
    + CHANGE.format(op="zebra", key="CPU"),
    "another plugin's library unregistered": """
import ctypes, custom_pypto.core as core
[path] = [p.library for p in core.plugins() if p.name == "ant"]
ctypes.CDLL(str(path)).custom_pypto_unregister_v1()
""",
    "an op of nobody": LIBRARY + "library.define('other_op(Tensor x) -> Tensor')",
    "a kernel of no op": LIBRARY + CHANGE.format(op="other_op", key="CPU"),
    "an op of nobody, whose schema torch derives": """
import torch
@torch.library.custom_op("custom_pypto::other_op", mutates_args=())
def function(x: torch.Tensor) -> torch.Tensor:
    return x + 5
""",
    "an overload of its op": LIBRARY + "library.define('broken.other(Tensor x) -> Tensor')",
}


@pytest.mark.parametrize("code", PYTHON.values(), ids=PYTHON)
def test_python_that_registers_more_is_taken_back(site: Site, code: str) -> None:
    for name in ("ant", "zebra"):
        site.install(name)
    site.install("broken", code)
    report = site.run(REPORT)
    assert report["states"] == {"ant": "loaded", "broken": "failed", "zebra": "loaded"}
    assert " it " not in report["reasons"]["ant"]
    assert report["results"]["ant"] == report["results"]["zebra"] == 2
    assert report["results"]["other_op"].startswith("torch.ops.custom_pypto has no op 'other_op'")


LIBRARIES = {
    "a kernel at registration": ("+ant(Tensor x) -> Tensor", "registers a CPU kernel for"),
    "a kernel by a static initialiser": ("=+ant(Tensor x) -> Tensor", "registers a CPU kernel for"),
    "an op at registration": ("other_op(Tensor x) -> Tensor", "registers the op 'other_op'"),
    "an op by a static initialiser": ("=other_op(Tensor x) -> Tensor", "registers the op 'other"),
}


@pytest.mark.parametrize(("line", "reason"), LIBRARIES.values(), ids=LIBRARIES)
def test_library_that_registers_more_is_set_aside(site: Site, line: str, reason: str) -> None:
    for name in ("ant", "zebra"):
        site.install(name)
    site.install("broken", registers=f"broken(Tensor x) -> Tensor\n{line}")
    report = site.run(REPORT)
    assert report["states"] == {"ant": "loaded", "broken": "failed", "zebra": "loaded"}
    assert report["reasons"]["broken"].startswith(f"it {reason}")
    assert report["results"]["ant"] == 2
    assert report["results"]["other_op"].startswith("torch.ops.custom_pypto has no op 'other_op'")


def test_plugin_that_crashes_when_it_is_loaded_again_is_named(site: Site) -> None:
    site.install(
        "ant",
        """
        import ctypes
        from custom_pypto_plugin import hookimpl
        calls = []
        @hookimpl
        def custom_pypto_fakes():
            calls.append(1)
            return {} if len(calls) == 1 else ctypes.string_at(0)
        """,
    )
    site.install("broken", registers="broken(Tensor x) -> Tensor\n=+ant(Tensor x) -> Tensor")
    done = site.start(REPORT)
    assert "the plugin 'ant' is loading; CUSTOM_PYPTO_DISABLE=ant skips it" in done.stderr


LATER: dict[str, Any] = {
    "kernel": ("=+zebra(Tensor x) -> Tensor", "registers a CPU kernel for"),
    "schema": ("=zebra(Tensor x) -> Tensor", "registers a CPU kernel for"),
    "another key": ("=*ant(Tensor x) -> Tensor", "registers a AutogradCPU kernel for"),
}


@pytest.mark.parametrize(("line", "reason"), LATER.values(), ids=LATER)
def test_op_that_a_static_initialiser_changed_for_good_refuses(
    site: Site, line: str, reason: str
) -> None:
    victim = "ant" if "ant" in line else "zebra"
    for name in ("ant", "zebra"):
        site.install(name)
    site.install("user", requires_ops=[victim])
    site.install("broken", registers=f"broken(Tensor x) -> Tensor\n{line}")
    report = site.run(REPORT)
    assert report["reasons"]["broken"].startswith(f"it {reason} custom_pypto::{victim},")
    advice = (
        f"the plugin 'broken' (custom-pypto-broken 0.1.0) changed its op {victim!r} in a way that"
        " cannot be taken back; set CUSTOM_PYPTO_DISABLE=broken"
    )
    assert report["states"].pop(victim) == "failed"
    assert report["reasons"][victim] == advice
    assert advice in report["results"][victim]
    assert report["reasons"]["user"].endswith(f"which failed: {advice}")


def test_the_plugin_is_known_by_the_file_that_registered_it(site: Site) -> None:
    # The name is in no text of its own.
    code = LIBRARY + "library.define('other' + '_' + 'op' + '(Tensor x) -> Tensor')"
    site.install("ant", "text = 'other_op(Tensor x) -> Tensor'")
    site.install("broken", code)
    assert site.run(REPORT)["states"] == {"ant": "loaded", "broken": "failed"}


def test_op_of_no_known_plugin_is_kept_for_the_doctor(site: Site) -> None:
    (site.folder / "helper.py").write_text(
        f"{LIBRARY}library.define('other' + '_op(Tensor x) -> Tensor')"
    )
    for name in ("ant", "broken"):
        site.install(name, "import helper")
    code = "import custom_pypto.core.loader as loader; give(loader.start().unclaimed)"
    assert site.run(code) == ["other_op"]


def test_op_of_somebody_else_disturbs_no_plugin(site: Site) -> None:
    # The text that would show a plugin's own op.
    site.install("ant", "def other_op(x): return x")
    given = site.run(
        LIBRARY,
        "library.define('other_op(Tensor x) -> Tensor')\n"
        + CHANGE.format(op="other_op", key="CPU"),
        REPORT,
    )
    assert given["results"]["other_op"] == 7
    assert given["states"] == {"ant": "loaded"}


def test_what_was_registered_before_new_plugins_load_is_left_alone(site: Site) -> None:
    site.install("ant")
    given = site.load(
        """
        library = torch.library.Library("custom_pypto", "FRAGMENT")
        library.impl("ant", lambda x: x + 5, "CPU")
        core.load_new()
        ops.ant(torch.ones(1)).item()
        """,
        quiet=True,
    )
    assert given == 6
