"""A plugin that registers more than its ops fails, and what it leaves behind is not called."""

import pytest
from loading import LOADED
from plugin_factory import Site

REPORT = f"""{LOADED}
import torch
def touched(name):
    try: return getattr(torch.ops.custom_pypto, name)(torch.full((1,), 2.0)).item()
    except AttributeError as error: return str(error)
report["results"] = {{name: touched(name) for name in ("ant", "other_op", "zebra")}}
give(report)
"""
LIBRARY = """
import torch
library = torch.library.Library("custom_pypto", "FRAGMENT")
"""
BROKEN = "broken(Tensor x) -> Tensor\n"
# Registers a kernel, and leaves no library behind.
DROPPED = """
def change():
    import torch
    library = torch.library.Library("custom_pypto", "IMPL")
    library.impl("ant", lambda x: x + 5, "CPU")
    raise LookupError
change()
"""
UNREGISTERING = """
import ctypes, custom_pypto.core as core
[path] = [p.library for p in core.plugins() if p.name == "ant"]
ctypes.CDLL(str(path)).custom_pypto_unregister_v1()
"""


def impl(op: str, key: str = "CPU") -> str:
    """Code that registers a kernel. It returns 7; the test plugins' kernels return 2."""
    return f"{LIBRARY}library.impl('{op}', lambda x: x + 5, '{key}')"


def define(op: str) -> str:
    return f"{LIBRARY}library.define('{op}(Tensor x) -> Tensor')"


def by_library(mark: str, op: str) -> str:
    """What a library registers besides its op; "=" marks what a static initialiser does."""
    return f"{BROKEN}{mark}{op}(Tensor x) -> Tensor"


def changes(op: str) -> str:
    return f"it changes what is registered for custom_pypto::{op}, which is an op of another plugin"


def adds(op: str) -> str:
    return f"it registers the op {op!r}, which its manifest does not list: describe it in ops.toml"


WITHOUT_LIBRARY = "import torch\ntorch.library.impl('custom_pypto::ant', 'CPU', lambda x: x + 5)"
FAILED = "importing its module 'custom_pypto_broken' failed: LookupError"
# Code of its module or what its library registers; the reason; the plugin whose op stays changed.
INTRUSIONS = {
    "kernel": (impl("ant"), changes("ant"), "ant"),
    "kernel for another key": (impl("ant", "AutogradCPU"), changes("ant"), "ant"),
    "kernel by a function of torch.library": (WITHOUT_LIBRARY, changes("ant"), "ant"),
    "kernel by a library that is dropped": (DROPPED, FAILED, None),
    "kernel of an op that loads later": (impl("zebra", "AutogradCPU"), changes("zebra"), "zebra"),
    "schema of an op that loads later": (define("zebra"), changes("zebra"), "zebra"),
    "another plugin's library unregistered": (UNREGISTERING, changes("ant"), "ant"),
    "op of nobody": (define("other_op"), adds("other_op"), None),
    "kernel of no op": (impl("other_op"), adds("other_op"), None),
    "overload of its op": (define("broken.other"), adds("broken.other"), None),
    "library: kernel": (by_library("+", "ant"), changes("ant"), None),
    "library: op": (by_library("", "other_op"), adds("other_op"), None),
    "initialiser: kernel": (by_library("=+", "ant"), changes("ant"), "ant"),
    "initialiser: kernel for another key": (by_library("=*", "ant"), changes("ant"), "ant"),
    "initialiser: kernel of a later op": (by_library("=+", "zebra"), changes("zebra"), "zebra"),
    "initialiser: schema of a later op": (by_library("=", "zebra"), changes("zebra"), "zebra"),
    "initialiser: op": (by_library("=", "other_op"), adds("other_op"), None),
}


@pytest.mark.parametrize(("given", "reason", "victim"), INTRUSIONS.values(), ids=INTRUSIONS)
def test_plugin_that_registers_more_fails(
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
    given = site.run(define("other_op"), impl("other_op").removeprefix(LIBRARY), REPORT)
    assert given["results"]["other_op"] == 7
    assert given["states"] == {"ant": "loaded"}


def test_what_was_registered_before_new_plugins_load_is_left_alone(site: Site) -> None:
    site.install("ant")
    code = "\ncore.load_new()\nops.ant(torch.ones(1)).item()"
    assert site.load(impl("ant") + code, quiet=True) == 6
