"""A plugin that registers more than its ops fails, and what it leaves behind is not called."""

from __future__ import annotations

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
CHANGED = "it changes what is registered for custom_pypto::{}, which is an op of another plugin"
ADDED = "it registers the op {!r}, which its manifest does not list: describe it in ops.toml"
BROKEN = "broken(Tensor x) -> Tensor\n"

# Code of its module or what its library registers; the reason; the plugin whose op stays changed.
INTRUSIONS = {
    "kernel": (LIBRARY + CHANGE.format(op="ant", key="CPU"), CHANGED.format("ant"), "ant"),
    "kernel for another key": (
        LIBRARY + CHANGE.format(op="ant", key="AutogradCPU"),
        CHANGED.format("ant"),
        "ant",
    ),
    "kernel by a function of torch.library": (
        "import torch\ntorch.library.impl('custom_pypto::ant', 'CPU', lambda x: x + 5)",
        CHANGED.format("ant"),
        "ant",
    ),
    "kernel by a library that is dropped": (
        """
def change():
    import torch
    library = torch.library.Library("custom_pypto", "IMPL")
    library.impl("ant", lambda x: x + 5, "CPU")
    raise LookupError
change()
""",
        "importing its module 'custom_pypto_broken' failed: LookupError",
        None,
    ),
    "kernel of an op that loads later": (
        LIBRARY + CHANGE.format(op="zebra", key="AutogradCPU"),
        CHANGED.format("zebra"),
        "zebra",
    ),
    "schema of an op that loads later": (
        LIBRARY + "library.define('zebra(Tensor x) -> Tensor')",
        CHANGED.format("zebra"),
        "zebra",
    ),
    "another plugin's library unregistered": (
        """
import ctypes, custom_pypto.core as core
[path] = [p.library for p in core.plugins() if p.name == "ant"]
ctypes.CDLL(str(path)).custom_pypto_unregister_v1()
""",
        CHANGED.format("ant"),
        "ant",
    ),
    "op of nobody": (
        LIBRARY + "library.define('other_op(Tensor x) -> Tensor')",
        ADDED.format("other_op"),
        None,
    ),
    "kernel of no op": (
        LIBRARY + CHANGE.format(op="other_op", key="CPU"),
        ADDED.format("other_op"),
        None,
    ),
    "overload of its op": (
        LIBRARY + "library.define('broken.other(Tensor x) -> Tensor')",
        ADDED.format("broken.other"),
        None,
    ),
    "library: kernel": (BROKEN + "+ant(Tensor x) -> Tensor", CHANGED.format("ant"), None),
    "library: op": (BROKEN + "other_op(Tensor x) -> Tensor", ADDED.format("other_op"), None),
    "static initialiser: kernel": (
        BROKEN + "=+ant(Tensor x) -> Tensor",
        CHANGED.format("ant"),
        "ant",
    ),
    "static initialiser: kernel for another key": (
        BROKEN + "=*ant(Tensor x) -> Tensor",
        CHANGED.format("ant"),
        "ant",
    ),
    "static initialiser: kernel of an op that loads later": (
        BROKEN + "=+zebra(Tensor x) -> Tensor",
        CHANGED.format("zebra"),
        "zebra",
    ),
    "static initialiser: schema of an op that loads later": (
        BROKEN + "=zebra(Tensor x) -> Tensor",
        CHANGED.format("zebra"),
        "zebra",
    ),
    "static initialiser: op": (
        BROKEN + "=other_op(Tensor x) -> Tensor",
        ADDED.format("other_op"),
        None,
    ),
}


@pytest.mark.parametrize(("given", "reason", "victim"), INTRUSIONS.values(), ids=INTRUSIONS)
def test_plugin_that_registers_more_fails_and_what_stays_is_not_called(
    site: Site, given: str, reason: str, victim: str | None
) -> None:
    for name in ("ant", "zebra"):
        site.install(name)
    site.install("user", requires_ops=[victim or "ant"])
    is_library = given.startswith(BROKEN)
    site.install("broken", **({"registers": given} if is_library else {"code": given}))
    report = site.run(REPORT)
    failed = {"broken", victim, "user"} if victim else {"broken"}
    assert {name for name, state in report["states"].items() if state == "failed"} == failed
    assert report["reasons"]["broken"].startswith(reason)
    assert report["results"]["other_op"].startswith("torch.ops.custom_pypto has no op 'other_op'")
    for name in {"ant", "zebra"} - failed:
        assert report["results"][name] == 2
    if victim:
        advice = (
            f"the plugin 'broken' (custom-pypto-broken 0.1.0) changed its op {victim!r}, and that"
            " cannot be undone; set CUSTOM_PYPTO_DISABLE=broken"
        )
        assert report["reasons"][victim] == advice
        assert advice in report["results"][victim]
        assert report["reasons"]["user"].endswith(f"which failed: {advice}")


def test_op_of_somebody_else_disturbs_no_plugin(site: Site) -> None:
    site.install("ant")
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
