"""Importing core and plugins in any order, again, in several threads and in forked processes."""

from __future__ import annotations

import pytest
from loading import FAKES
from plugin_factory import Site

STATES = "import custom_pypto.core as core; give({p.name: p.status for p in core.plugins()})"
QUIET = "import warnings; warnings.simplefilter('ignore')"


def test_plugin_imported_first_loads_nothing(site: Site) -> None:
    site.install("first", FAKES)
    code = """
        import sys, custom_pypto_first
        give("custom_pypto.core" in sys.modules)
    """
    assert not site.run(code)


ORDERS = {
    "one first, then core": ({"first": FAKES, "second": ""}, "import custom_pypto_first"),
    "one that imports core, after core": ({"first": f"import custom_pypto.core{FAKES}"}, ""),
    "one that uses its op": ({"first": f"{FAKES}op = torch.ops.custom_pypto.first"}, ""),
    "two that import each other": (
        {"ant": "import custom_pypto_bee", "bee": "import custom_pypto_ant"},
        "",
    ),
}


@pytest.mark.parametrize(("plugins", "code"), ORDERS.values(), ids=ORDERS)
def test_plugins_are_loaded_in_any_order_of_imports(
    site: Site, plugins: dict[str, str], code: str
) -> None:
    for name, source in plugins.items():
        site.install(name, source)
    assert site.run(code, STATES) == dict.fromkeys(plugins, "loaded")


def test_op_of_a_plugin_imported_first_has_all_its_kernels(site: Site) -> None:
    site.install("first", FAKES)
    code = "import custom_pypto_first, custom_pypto.core as c; give(c.ops()[0].dispatch_keys)"
    assert site.run(code) == ["CPU", "Meta"]


def test_submodule_that_imports_core_may_be_imported_first(site: Site) -> None:
    installed = site.install("first", FAKES)
    (installed.package / "part.py").write_text("import custom_pypto.core", encoding="utf-8")
    assert site.run("import custom_pypto_first.part", STATES) == {"first": "loaded"}


def test_plugin_imported_first_that_imports_core_fails_and_says_what_to_do(site: Site) -> None:
    site.install("first", "import custom_pypto.core" + FAKES)
    site.install("second")
    given = site.run(
        QUIET,
        """
        import custom_pypto_first, custom_pypto.core as core
        give([[p.name, p.status, p.reason] for p in core.plugins()])
        """,
    )
    assert given == [
        ["second", "loaded", ""],
        [
            "first",
            "failed",
            (
                "its module 'custom_pypto_first' imports custom_pypto.core, and was imported before"
                " it, so that its hooks are not there yet; import custom_pypto.core first, or let"
                " the module import from custom_pypto_plugin, which loads nothing, instead"
            ),
        ],
    ]


def test_plugin_that_looks_at_the_others_while_it_is_loaded_sees_their_states(site: Site) -> None:
    site.install("ant")
    site.install(
        "bee",
        """
        import torch
        import custom_pypto.core as core
        states = {p.name: p.status for p in core.plugins()}
        try: torch.ops.custom_pypto.cat
        except AttributeError as error: message = str(error)
        """,
    )
    site.install("cat")
    given = site.run("import custom_pypto.core, custom_pypto_bee as p; give([p.states, p.message])")
    assert given == [
        {"ant": "loaded", "bee": "accepted", "cat": "accepted"},
        (
            "torch.ops.custom_pypto has no op 'cat': it belongs to the plugin 'cat'"
            " (custom-pypto-cat 0.1.0), which is not loaded yet: the import of custom_pypto.core"
            " goes on"
        ),
    ]


def test_threads_that_import_core_together_load_each_plugin_once(site: Site) -> None:
    counter = "import builtins; builtins.loads = getattr(builtins, 'loads', 0) + 1\n"
    site.install("first", counter + FAKES)
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


IMPORT_TOGETHER = """
import importlib, threading
barrier = threading.Barrier(len(modules))
def use(module):
    barrier.wait()
    importlib.import_module(module)
threads = [threading.Thread(target=use, args=(module,)) for module in modules]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_that_import_core_and_plugins_together_do_not_block_each_other(site: Site) -> None:
    names = ("first", "second", "third", "fourth")
    for name in names:
        site.install(name, FAKES.replace('"first"', repr(name)))
    modules = ["custom_pypto.core", *(f"custom_pypto_{name}" for name in names)]
    given = site.run(
        f"modules = {modules}",
        IMPORT_TOGETHER,
        STATES,
    )
    assert set(given.values()) == {"loaded"}


def test_core_and_a_plugin_that_imports_core_may_be_imported_by_two_threads(site: Site) -> None:
    # Each waits for the other: Python lets one of them have an incomplete module.
    site.install("first", "import time\ntime.sleep(0.05)\nimport custom_pypto.core\n" + FAKES)
    status, reason = site.run(
        QUIET,
        "modules = ['custom_pypto.core', 'custom_pypto_first']",
        IMPORT_TOGETHER,
        """
        import custom_pypto.core as core
        (plugin,) = core.plugins()
        give([plugin.status, plugin.reason])
        """,
    )
    assert status == "loaded" or "was imported before it" in reason


def test_core_that_was_deleted_and_is_imported_again_has_its_plugins(site: Site) -> None:
    site.install("first", FAKES)
    code = """
        import sys, torch, custom_pypto.core
        for name in list(sys.modules):
            if name.startswith("custom_pypto"): del sys.modules[name]
        import custom_pypto.core
        assert torch.ops.custom_pypto.first(torch.ones(1)).item() == 1
    """
    assert site.run(code, STATES) == {"first": "loaded"}


def test_importing_core_reads_no_contract(site: Site) -> None:
    """That takes long: it is done when an op is looked up, described, or called with fakes."""
    site.install("first", FAKES)
    code = """
        import sys, custom_pypto.core
        give([name for name in sys.modules if name.startswith("custom_pypto_contract.")])
    """
    needed = {
        "abi",
        "errors",
        "manifest",
        "manifest_file",
        "op_name",
        "platforms",
    }
    needed |= {"small_file", "tables"}
    assert set(site.run(code)) == {f"custom_pypto_contract.{name}" for name in needed}


def test_forked_process_can_use_and_load(site: Site) -> None:
    site.install("first")
    given = site.load("""
        import os, sys
        child = os.fork()
        if child == 0:
            result = ops.first(torch.ones(1)).item()
            os._exit(int(result) if core.ops() else 9)
        os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        """)
    assert given == 1


def test_plugin_may_fork_while_it_is_loaded(site: Site) -> None:
    site.install("first", "import os; child = os.fork()")
    given = site.start(
        """
        import os, sys, custom_pypto.core as core, custom_pypto_first
        if custom_pypto_first.child == 0:
            os._exit(0 if core.plugins()[0].status == "loaded" else 9)
        give(os.waitstatus_to_exitcode(os.waitpid(custom_pypto_first.child, 0)[1]))
        """
    )
    assert (given.stdout, given.stderr) == ("0\n", "")


def test_reload_of_core_loads_nothing_twice(site: Site) -> None:
    site.install("first")
    assert site.load("""
        import importlib
        importlib.reload(core)
        [p.status for p in core.plugins()]
        """) == ["loaded"]
