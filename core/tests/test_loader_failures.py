"""Plugins that do not load, each in a Python of its own: what is reported, what is left."""

from __future__ import annotations

import re
from typing import Any

import pytest
from loading import HOOKS, REPORT, failure_of
from plugin_factory import Site

SECOND = "-second(Tensor x) -> Tensor"

# Plugins that fail, one way each


# A plugin that fails, and the reason, in which FILE is its module; tests/bad_plugins has others.
FAILURES = {
    **{
        f"module with {code}": (
            {"code": code},
            f"importing its module 'custom_pypto_broken' failed: {reported}",
        )
        for code, reported in {
            "raise GeneratorExit": "GeneratorExit (FILE, line 1)",
            "no python": "SyntaxError: invalid syntax (__init__.py, line 1)",
        }.items()
    },
    "registration that torch refuses": (
        {"registers": "broken(Tonsor x) -> Tensor"},
        "registering its ops failed: ...Tonsor...",
    ),
    "registration of another op than the manifest lists": (
        {"registers": "other_op(Tensor x) -> Tensor"},
        (
            "its manifest lists the op 'broken', but its library does not register it: define it in"
            " CUSTOM_PYPTO_PLUGIN, or take it out of ops.toml, and build the plugin again"
        ),
    ),
    "derivative that torch refuses": (
        {
            "code": f"{HOOKS}@hookimpl\n"
            "def custom_pypto_autograd(): return {'broken': Autograd(fake)}",
            "ops": ["broken(Tensor(a!) x) -> Tensor"],
        },
        "broken: torch refused the derivative: Cannot register...",
    ),
}


@pytest.mark.parametrize(("plugin", "reason"), FAILURES.values(), ids=FAILURES)
def test_plugin_that_fails_says_why(site: Site, plugin: dict[str, Any], reason: str) -> None:
    installed = site.install("broken", **plugin)
    reason = reason.replace("FILE", str(installed.package / "__init__.py"))
    pattern = re.escape(reason).replace(r"\.\.\.", ".*")
    assert re.fullmatch(pattern, failure_of(site), re.DOTALL)


def test_keyboard_interrupt_ends_loading_and_leaves_nothing_behind(site: Site) -> None:
    site.install("a_healthy")
    site.install("broken", "raise KeyboardInterrupt")
    given = site.run(
        """
        import torch
        try: import custom_pypto.core
        except KeyboardInterrupt: pass
        give(torch._C._get_operation_overload("custom_pypto::a_healthy", "") is None)
        """
    )
    assert given


def test_import_can_be_tried_again_after_it_was_interrupted(site: Site) -> None:
    site.install("a_healthy")
    site.install(
        "broken",
        """
        import builtins
        if not hasattr(builtins, "tried"):
            builtins.tried = True
            raise KeyboardInterrupt
        """,
    )
    given = site.run(
        """
        try: import custom_pypto.core
        except KeyboardInterrupt: pass
        import custom_pypto.core as core
        give([p.status for p in core.plugins()])
        """
    )
    assert given == ["loaded", "loaded"]


# Ops without a kernel


def test_op_without_a_kernel_says_so_at_the_call_and_in_the_record(site: Site) -> None:
    site.install("first", ops=["first", "second"], registers=f"first(Tensor x) -> Tensor\n{SECOND}")
    assert site.load("""
        one = ops.first(torch.ones(1)).item()
        [refusal(ops.second, torch.ones(1)), one, {op.name: op.dispatch_keys for op in core.ops()}]
        """) == [
        (
            "second has no kernel for any device: its plugin registers none, the plugin 'first'"
            " (custom-pypto-first 0.1.0); upgrade the plugin: pip install --upgrade"
            " custom-pypto-first; its author registers kernels in C++ or by the hook"
            " custom_pypto_kernels"
        ),
        1,
        {"first": ["CPU"], "second": []},
    ]


def test_op_without_a_kernel_can_be_given_one_by_somebody_else(site: Site) -> None:
    site.install("second", registers=SECOND)
    given = site.load("""
        torch.library.impl("custom_pypto::second", "CPU", lambda x: x + 1)
        ops.second(torch.ones(1)).item()
        """)
    assert given == 2


def test_op_that_somebody_else_has_registered(site: Site) -> None:
    site.install("broken")
    given = site.run(
        """
        import torch
        library = torch.library.Library("custom_pypto", "FRAGMENT")
        library.define("broken(Tensor x) -> Tensor")
        """,
        REPORT,
    )
    assert given["reasons"]["broken"].startswith(
        "custom_pypto::broken is registered in this process already, by something that is no plugin"
    )


def test_everything_of_a_failed_plugin_is_taken_back(site: Site) -> None:
    site.install(
        "broken",
        HOOKS
        + """
@hookimpl
def custom_pypto_fakes(): return {"one": fake, "two": fake}
@hookimpl
def custom_pypto_autograd(): return {"one": Autograd(fake), "two": None}
""",
        ops=["one", "two"],
    )
    assert site.load(
        """
        [
            hasattr(ops, "one"),
            "custom_pypto::one" in torch._C._dispatch_get_all_op_names(),
            torch._library.simple_registry.singleton.find("custom_pypto::one").fake_impl.kernel,
        ]
        """,
        quiet=True,
    ) == [False, False, None]


def test_plugin_that_requires_a_failed_plugin_fails_with_it(site: Site) -> None:
    site.install("base", "raise LookupError('no')")
    site.install("user", requires_ops=["base"])
    report = site.run(REPORT)
    assert report["reasons"]["user"].startswith(
        "requires the op 'base' of the plugin 'base', which failed: importing its module"
    )
    assert len(report["warnings"]) == 2


def test_library_that_changes_after_it_was_checked_is_not_opened(site: Site) -> None:
    broken = site.install("broken")
    site.install("ant", f"import os; os.truncate({str(broken.library)!r}, 1 << 20)")
    assert failure_of(site) == (
        f"its library {broken.library} changed after core had checked it; start again"
    )


def test_module_that_hides_the_plugins(site: Site) -> None:
    site.install("broken")
    given = site.run(
        """
        import sys, types, importlib.util
        spec = importlib.util.find_spec("custom_pypto_broken")
        impostor = types.ModuleType("custom_pypto_broken")
        impostor.__spec__ = spec
        sys.modules["custom_pypto_broken"] = impostor
        """,
        REPORT,
    )
    assert given["reasons"]["broken"].startswith(
        "another module called 'custom_pypto_broken', <module 'custom_pypto_broken'"
    )
