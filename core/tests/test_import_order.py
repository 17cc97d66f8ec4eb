"""Importing a plugin's package before core, from any side and in several threads."""

from __future__ import annotations

from custom_pypto_discovery.environment import STRICT
from plugin_factory import Site

HOOKS = """
from custom_pypto_plugin import Autograd, hookimpl
import torch
@hookimpl
def custom_pypto_fakes(): return {"first": lambda x: torch.empty_like(x)}
"""
STATES = "import custom_pypto.core as core; give({p.name: p.status for p in core.plugins()})"


def test_plugin_imported_first_is_loaded(site: Site) -> None:
    site.install("first", HOOKS)
    site.install("second")
    assert site.run("import custom_pypto_first", STATES) == {"first": "loaded", "second": "loaded"}


def test_plugin_imported_first_is_loaded_as_soon_as_its_import_ends(site: Site) -> None:
    site.install("first", HOOKS)
    given = site.run(
        """
        import custom_pypto_first, torch
        names = torch._C._dispatch_get_all_op_names()
        give(["custom_pypto::first" in names, "first" in vars(torch.ops.custom_pypto)])
        """
    )
    assert given == [True, False]


def test_op_of_a_plugin_imported_first_has_all_its_kernels(site: Site) -> None:
    site.install("first", HOOKS)
    code = "import custom_pypto_first, custom_pypto.core as c; give(c.ops()[0].dispatch_keys)"
    assert site.run(code) == ["CPU", "Meta"]


def test_plugins_that_require_one_imported_first_are_loaded_after_it(site: Site) -> None:
    site.install("first", HOOKS)
    site.install("user", requires_ops=["first"])
    assert site.run("import custom_pypto_first", STATES) == {"first": "loaded", "user": "loaded"}


def test_submodule_imported_first_is_loaded(site: Site) -> None:
    installed = site.install("first", HOOKS)
    (installed.package / "part.py").write_text("import custom_pypto.core", encoding="utf-8")
    assert site.run("import custom_pypto_first.part", STATES) == {"first": "loaded"}


def test_plugin_is_pending_while_it_is_being_imported(site: Site) -> None:
    site.install(
        "first",
        HOOKS
        + """
import custom_pypto.core as core
state = core.plugins()[0].status
try: torch.ops.custom_pypto.first
except AttributeError as error: message = str(error)
""",
    )
    given = site.run("import custom_pypto_first as p; give([p.state, p.message])")
    message = (
        "torch.ops.custom_pypto has no op 'first': it belongs to the plugin 'first'"
        " (custom-pypto-first 0.1.0), which is being imported; its ops can be used when that has"
        " ended"
    )
    assert given == ["pending", message]


def test_plugin_that_core_imports_sees_its_own_op(site: Site) -> None:
    site.install("first", HOOKS + "op = torch.ops.custom_pypto.first")
    assert site.run(STATES) == {"first": "loaded"}


def test_plugin_that_imports_another_that_loads_later_is_loaded(site: Site) -> None:
    site.install("ant", "import custom_pypto_bee")
    site.install("bee", "import custom_pypto_ant")
    assert site.run(STATES) == {"ant": "loaded", "bee": "loaded"}


def test_plugin_imported_first_whose_import_fails_is_quarantined(site: Site) -> None:
    site.install("first", HOOKS + "raise ValueError('late')")
    given = site.run(
        """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try: import custom_pypto_first
            except ValueError as error: raised = str(error)
        import custom_pypto.core as core
        give([raised, [str(w.message)[:48] for w in caught], core.plugins()[0].status])
        """
    )
    assert given == [
        "late",
        ["the plugin 'first' (custom-pypto-first 0.1.0) is"],
        "quarantined",
    ]


def test_strict_makes_the_import_of_a_broken_plugin_fail(site: Site) -> None:
    site.install("first", HOOKS.replace('"first"', '"nothing"'))
    done = site.start("import custom_pypto_first", **{STRICT: "1"})
    assert "PluginError: CUSTOM_PYPTO_STRICT is set, and 1 of the installed" in done.stderr


def test_plugin_whose_package_is_imported_first_by_another_name_of_import_is_loaded(
    site: Site,
) -> None:
    site.install("first", HOOKS)
    code = "import importlib; importlib.import_module('custom_pypto_first')"
    assert site.run(code, STATES) == {"first": "loaded"}


def test_threads_that_import_core_together_load_each_plugin_once(site: Site) -> None:
    counter = "import builtins; builtins.loads = getattr(builtins, 'loads', 0) + 1\n"
    site.install("first", counter + HOOKS)
    given = site.run(
        """
        import threading, builtins
        barrier = threading.Barrier(8)
        results = []
        def use():
            barrier.wait()
            import custom_pypto.core, torch
            results.append(torch.ops.custom_pypto.first(torch.ones(1)).item())
        threads = [threading.Thread(target=use) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        give([results, builtins.loads])
        """
    )
    assert given == [[1] * 8, 1]


def test_threads_that_import_core_and_plugins_together_do_not_block_each_other(site: Site) -> None:
    names = ("first", "second", "third", "fourth")
    for name in names:
        site.install(name, HOOKS.replace('"first"', repr(name)))
    given = site.run(
        f"""
        import importlib, threading
        modules = ["custom_pypto.core", *(f"custom_pypto_{{name}}" for name in {names})]
        barrier = threading.Barrier(len(modules))
        def use(module):
            barrier.wait()
            importlib.import_module(module)
        threads = [threading.Thread(target=use, args=(module,)) for module in modules]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """,
        STATES,
    )
    assert set(given.values()) == {"loaded"}
