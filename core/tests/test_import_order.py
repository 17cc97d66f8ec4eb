"""Importing core and plugins in any order, again, and in several threads."""

import itertools
import json
from pathlib import Path
from typing import Any

import plugin_factory
import pytest
from loading import FAKES
from plugin_factory import Site

# All that core says of its plugins, and what each op returns.
REGISTRY = """
import custom_pypto.core as core, torch
def registry():
    ops = [[op.name, op.schema, op.plugin, op.dispatch_keys] for op in core.ops()]
    results = [getattr(torch.ops.custom_pypto, op[0])(torch.arange(3)).tolist() for op in ops]
    contributed = [[core.contract(op[0]).name, core.reference(op[0]) is not None] for op in ops]
    return [[[p.name, p.status, p.reason] for p in core.plugins()], ops, results, contributed]
"""
# What it says of `three`.
OF_THREE = [
    [["bee", "loaded", ""], ["cat", "loaded", ""], ["ant", "loaded", ""]],
    [[op, f"{op}(Tensor x) -> Tensor", op, ["CPU", "Meta"]] for op in ("ant", "bee", "cat")],
    [[0, 1, 2]] * 3,
    [["ant", False], ["bee", True], ["cat", False]],
]


@pytest.fixture
def three(site: Site) -> list[Path]:
    """Folders with a plugin each: one that needs the op of the last, and one without a library."""
    ant, bee, cat = map(site.other, ("ant", "bee", "cat"))
    part = ant.install("ant", FAKES.replace("first", "ant"), requires_ops=["cat"]).package
    (part / "part.py").write_text("import custom_pypto.core", encoding="utf-8")
    bee.install(
        "bee",
        FAKES.replace("first", "bee")
        + """
@hookimpl
def custom_pypto_kernels(): return {"bee": {"CPU": torch.clone}}
@hookimpl
def custom_pypto_references(): return {"bee": Reference(torch.clone)}
""",
        with_library=False,
    )
    cat.install("cat", FAKES.replace("first", "cat"))
    return [ant.folder, bee.folder, cat.folder]


def value_of(site: Site, path: list[Path], code: str, value: str = "registry()") -> Any:
    """Run `code` with this path in a new Python; return a value there."""
    done = site.server.run(f"{code}import json\nprint(json.dumps({value}))", path, {})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# One of each package, and of each kind of module.
FIRST = (
    "custom_pypto.core",
    "custom_pypto_plugin",
    "custom_pypto_testing.ops_under_test",
    "custom_pypto_ant.part",
    "custom_pypto_cat",
)


@pytest.mark.parametrize("number", range(len(FIRST)))
def test_three_plugins_load_alike_in_any_order(site: Site, three: list[Path], number: int) -> None:
    plugin_factory.link(site.folder, "custom_pypto_testing")
    code = f"import {FIRST[number]}{REGISTRY}"
    # Two of six orders, others with each import.
    orders = [*itertools.permutations(three)]
    for path in (orders[number], orders[-1 - number]):
        assert value_of(site, [*path, site.folder], code) == OF_THREE


def test_plugins_that_import_each_other_are_loaded(site: Site) -> None:
    site.install("ant", "import custom_pypto_bee")
    site.install("bee", "import custom_pypto_ant")
    assert site.load("[p.status for p in core.plugins()]") == ["loaded"] * 2


def test_plugin_imported_first_that_imports_core_fails_with_advice(site: Site) -> None:
    site.install("first", "import custom_pypto.core" + FAKES)
    site.install("second")
    given = site.run(
        "import warnings; warnings.simplefilter('ignore')",
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


DELETE = "for key in [key for key in sys.modules if key.startswith({!r})]: del sys.modules[key]"
AGAIN = {
    "core reloaded": "importlib.reload(core)",
    "the package around core reloaded": "importlib.reload(sys.modules['custom_pypto'])",
    "the loader reloaded": "importlib.reload(sys.modules['custom_pypto.core.loader'])",
    "a plugin reloaded": "importlib.reload(importlib.import_module('custom_pypto_bee'))",
    "core deleted": DELETE.format("custom_pypto.core"),
    "the API of plugins deleted": DELETE.format("custom_pypto_plugin"),
    "a plugin deleted": DELETE.format("custom_pypto_bee") + "\nimport custom_pypto_bee",
    "all deleted": DELETE.format("custom_pypto"),
}


@pytest.mark.parametrize("code", AGAIN.values(), ids=AGAIN)
def test_modules_that_are_imported_again(site: Site, three: list[Path], code: str) -> None:
    code = f"import importlib, sys{REGISTRY}registry()\n{code}{REGISTRY}core.load_new()\n"
    assert value_of(site, three, code) == OF_THREE


def test_importing_core_reads_no_contract(site: Site) -> None:
    """That takes long: it is done when an op is looked up, described, or called with fakes."""
    site.install("first", FAKES)
    code = """
        import gc, sys, custom_pypto.core
        assert gc.isenabled()
        assert not {
            "custom_pypto.core.watched_kernels",
            "custom_pypto_discovery.lock_file",
            "torch.utils.flop_counter",
        } & {*sys.modules}
        give([name for name in sys.modules if name.startswith("custom_pypto_contract.")])
    """
    needed = (
        "abi dispatch_keys errors fork_locks manifest op_name platforms small_file tables variables"
    )
    assert set(site.run(code)) == {f"custom_pypto_contract.{name}" for name in needed.split()}
