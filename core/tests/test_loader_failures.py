"""Plugins that do not load: what is reported, what is left. No import of core fails."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fork_server import ForkServer
from loading import HOOKS, LOADED, REPORT, failure_of
from plugin_factory import Installed, Site

# A module of a plugin, and what is said of its import.
RAISING = {
    "exits": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "no_exception": (
        "class Odd(BaseException): pass\nraise Odd('not an Exception')",
        "Odd: not an Exception",
    ),
    "odd_text": (
        "class Odd(Exception):\n  def __str__(self): raise SystemExit\nraise Odd",
        "Odd, whose text cannot be read: SystemExit",
    ),
}


def _rehash(installed: Installed, contents: bytes) -> None:
    installed.library.write_bytes(contents)
    sha256 = hashlib.sha256(contents).hexdigest()
    installed.forge(library={"path": f"lib/{installed.library.name}", "sha256": sha256})


def _rename_register(installed: Installed) -> None:
    contents = installed.library.read_bytes()
    _rehash(installed, contents.replace(b"pypto_register_v1", b"pypto_registar_v1"))


Spoil = Callable[[Installed], object]

# What is installed, what then is done to it, and the reason: FILE is its module, LIBRARY its
# library, "..." any text.
FAILED: dict[str, tuple[dict[str, Any], Spoil, str]] = {
    **{
        name: (
            {"code": code},
            id,
            f"importing its module 'custom_pypto_{name}' failed: {said} (FILE, line ...)",
        )
        for name, (code, said) in RAISING.items()
    },
    "no_python": (
        {"code": "no python"},
        id,
        (
            "importing its module 'custom_pypto_no_python' failed: SyntaxError: invalid syntax"
            " (__init__.py, line 1)"
        ),
    ),
    "refused_schema": (
        {"registers": "broken(Tonsor x) -> Tensor"},
        id,
        "registering its ops failed: broken: torch refused it",
    ),
    "refusing": ({"registers": "!not today"}, id, "registering its ops failed: not today"),
    "no_utf_8": ({"registers": "!caf\udce9"}, id, "registering its ops failed: caf\ufffd"),
    "other_op": (
        {"registers": "another_op(Tensor x) -> Tensor"},
        id,
        (
            "its manifest lists the op 'other_op', but its library does not register it: define it"
            " in CUSTOM_PYPTO_PLUGIN, or take it out of ops.toml, and build the plugin again"
        ),
    ),
    "other_schema": (
        {
            "ops": ["other_schema(Tensor x, int k) -> Tensor"],
            "registers": "other_schema(Tensor x) -> Tensor",
        },
        id,
        (
            "its library registers custom_pypto::other_schema(Tensor x) -> Tensor, but its manifest"
            " says custom_pypto::other_schema(Tensor x, int k) -> Tensor; build the plugin again"
        ),
    ),
    "refused_derivative": (
        {
            "code": f"{HOOKS}@hookimpl\n"
            "def custom_pypto_autograd(): return {'refused_derivative': Autograd(fake)}",
            "ops": ["refused_derivative(Tensor(a!) x) -> Tensor"],
        },
        id,
        "refused_derivative: torch refused the derivative: Cannot register...",
    ),
    "no_library": (
        {},
        lambda plugin: _rehash(plugin, b"text\n"),
        "the library cannot be opened: LIBRARY: file too short",
    ),
    "no_interface": (
        {},
        _rename_register,
        (
            "the library LIBRARY does not export core's interface (LIBRARY: undefined symbol:"
            " custom_pypto_register_v1); register its ops with CUSTOM_PYPTO_PLUGIN of"
            " custom_pypto/plugin.h"
        ),
    ),
}
# Leaves a trace of code that core refused.
RUNS = "import pathlib; (pathlib.Path(__file__).parent / 'has_run').touch()"
# One for each step: files, other plugins. The tests of discovery have the rest.
REJECTED: dict[str, tuple[dict[str, Any], Spoil, str]] = {
    "changed_library": (
        {},
        lambda plugin: plugin.library.write_bytes(plugin.library.read_bytes() + b"changed"),
        "its library LIBRARY is not the one it was built with: sha256 ..., the manifest says ...",
    ),
    "same_op": (
        {"ops": ["shared"]},
        id,
        (
            "the plugin 'same_op' of custom-pypto-same-op and the plugin 'same_op_too' of"
            " custom-pypto-same-op-too each provide the op 'shared', so none of them loads; ..."
        ),
    ),
    "same_op_too": ({"ops": ["shared"]}, id, "...each provide the op 'shared'..."),
}
BAD = {**FAILED, **REJECTED}
TOUCHED = """
import torch
def touched(op):
    try: return str(getattr(torch.ops.custom_pypto, op))
    except AttributeError as error: return str(error)
"""


@pytest.fixture(scope="module")
def report(
    tmp_path_factory: pytest.TempPathFactory, server: ForkServer, plugin_library: Path
) -> dict[str, Any]:
    """What a process says in which all of them, and a good one, are installed."""
    site = Site(tmp_path_factory.mktemp("bad"), server, plugin_library)
    reasons = {}
    for name, (plugin, spoil, reason) in BAD.items():
        code = RUNS if name in REJECTED else ""
        installed = site.install(name, **{"code": code, **plugin})
        spoil(installed)
        reason = reason.replace("FILE", str(installed.package / "__init__.py"))
        reason = reason.replace("LIBRARY", str(installed.library))
        reasons[name] = re.escape(reason).replace(r"\.\.\.", ".*")
    site.install("healthy")
    ops = {
        name: plugin.get("ops", [name])[0].partition("(")[0] for name, (plugin, *_) in BAD.items()
    }
    code = f"""
report["touched"] = {{name: touched(op) for name, op in {ops}.items()}}
report["healthy"] = torch.ops.custom_pypto.healthy(torch.ones(1)).item()
report["opened"] = open("/proc/self/maps").read()
report["visible"] = hasattr(__import__("ctypes").CDLL(None), "custom_pypto_register_v1")
give(report)
"""
    return {**site.run(LOADED, TOUCHED, code), "folder": str(site.folder), "patterns": reasons}


@pytest.mark.parametrize("name", BAD)
def test_plugin_that_does_not_load_says_why(report: dict[str, Any], name: str) -> None:
    reason = report["reasons"][name]
    assert re.fullmatch(report["patterns"][name], reason, re.DOTALL), reason
    assert report["states"][name] == ("failed" if name in FAILED else "rejected")
    assert reason in report["touched"][name]


def test_plugins_that_do_not_load_stop_no_other(report: dict[str, Any]) -> None:
    assert report["states"]["healthy"] == "loaded"
    assert report["healthy"] == 1
    # Nobody else sees the symbols of a library.
    assert report["visible"] is False
    assert len(report["states"]) == len(BAD) + 1
    categories = [category for category, *_ in report["warnings"]]
    assert categories == [
        *["PluginFailedWarning"] * len(FAILED),
        *["PluginRejectedWarning"] * len(REJECTED),
    ]


def test_nothing_of_a_rejected_plugin_runs(report: dict[str, Any]) -> None:
    for name in REJECTED:
        package = f"{report['folder']}/custom_pypto_{name}"
        assert Path(package).is_dir()
        assert not Path(package, "has_run").exists(), name
        assert f"{package}/" not in report["opened"], name


def test_op_without_a_kernel_can_be_given_one_by_somebody_else(site: Site) -> None:
    registers = "first(Tensor x) -> Tensor\n-second(Tensor x) -> Tensor"
    site.install("first", ops=["first", "second"], registers=registers)
    assert site.load("""
        one = torch.ones(1)
        given = [refusal(ops.second, one), {op.name: op.dispatch_keys for op in core.ops()}]
        torch.library.impl("custom_pypto::second", "CPU", lambda x: x + 1)
        [*given, ops.first(one).item(), ops.second(one).item()]
        """) == [
        (
            "second has no kernel for any device: its plugin registers none, the plugin 'first'"
            " (custom-pypto-first 0.1.0); upgrade the plugin: pip install --upgrade"
            " custom-pypto-first; its author registers kernels in C++ or by the hook"
            " custom_pypto_kernels"
        ),
        {"first": ["CPU"], "second": []},
        1,
        2,
    ]


# Code that runs before the import of core, and what is said of the plugin `broken`.
BEFORE = {
    "its op registered": (
        """
        import torch
        library = torch.library.Library("custom_pypto", "FRAGMENT")
        library.define("broken(Tensor x) -> Tensor")
        """,
        "custom_pypto::broken is registered in this process already, by something that is no",
    ),
    "its module hidden": (
        """
        import sys, types, importlib.util
        spec = importlib.util.find_spec("custom_pypto_broken")
        impostor = sys.modules["custom_pypto_broken"] = types.ModuleType("custom_pypto_broken")
        impostor.__spec__ = spec
        """,
        "another module called 'custom_pypto_broken', <module 'custom_pypto_broken'",
    ),
}


@pytest.mark.parametrize(("code", "reason"), BEFORE.values(), ids=BEFORE)
def test_what_came_before_the_plugin_is_named(site: Site, code: str, reason: str) -> None:
    site.install("broken")
    assert site.run(code, REPORT)["reasons"]["broken"].startswith(reason)


@pytest.mark.parametrize("with_library", [True, False])
def test_everything_of_a_failed_plugin_is_taken_back(site: Site, with_library: bool) -> None:
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
        with_library=with_library,
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


def test_library_that_changes_after_it_was_checked_is_not_opened(site: Site) -> None:
    broken = site.install("broken")
    site.install("ant", f"import os; os.truncate({str(broken.library)!r}, 1 << 20)")
    assert failure_of(site) == (
        f"its library {broken.library} changed after core had checked it; start again"
    )
