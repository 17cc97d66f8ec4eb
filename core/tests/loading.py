"""Code that the tests of loading run in a new Python, and the failures that they expect."""

from plugin_factory import Site

# Loads what is installed, with a `report` on it.
LOADED = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import custom_pypto.core as core
report = {
    "warnings": [[w.category.__name__, str(w.message), w.filename] for w in caught],
    "reasons": {p.name: p.reason for p in core.plugins()},
    "states": {p.name: p.status for p in core.plugins()},
    "ops": [op.name for op in core.ops()],
}
"""
REPORT = f"{LOADED}give(report)"
HOOKS = """
from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl
import torch
def fake(x): return torch.empty_like(x)
"""
FAKES = f"""{HOOKS}
@hookimpl
def custom_pypto_fakes(): return {{"first": fake}}
"""
# What commands do in a process of their own they do in this one, which has torch already.
CHILDREN_HERE = """
from custom_pypto_cli import subprocess_call as calls
calls.call = lambda function, *given, **_: calls.Outcome(function(*given))
"""


def failure_of(site: Site, name: str = "broken") -> str:
    """Load what is installed, and return why `name` failed while all others work."""
    site.install("healthy")
    report = site.run(REPORT)
    states = report["states"]
    assert states.pop(name) == "failed"
    assert set(states.values()) == {"loaded"}
    assert not any(op.startswith(name) for op in report["ops"])
    ((category, message, _),) = report["warnings"]
    assert category == "PluginFailedWarning"
    reason: str = report["reasons"][name]
    assert message == f"the plugin {name!r} (custom-pypto-{name} 0.1.0) failed: {reason}"
    return reason
