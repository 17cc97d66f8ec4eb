"""torch.ops.custom_pypto: what it says of ops that are not there, and what torch does with it."""

from __future__ import annotations

import textwrap

import pytest
from custom_pypto_discovery.environment import DISABLE
from loading import FAKES
from plugin_factory import Site


def message(site: Site, op: str, **variables: str) -> str:
    """What a user is told who looks up an op that is not there."""
    code = f"refusal(getattr, ops, {op!r}, error=AttributeError)"
    text: str = site.load(code, quiet=True, **variables)
    return text


def test_failed_op_gives_plugin_distribution_and_reason(site: Site) -> None:
    installed = site.install("broken", "raise ValueError('no luck')")
    assert message(site, "broken") == (
        "torch.ops.custom_pypto has no op 'broken': it belongs to the plugin 'broken'"
        " (custom-pypto-broken 0.1.0), which failed: importing its module"
        " 'custom_pypto_broken' failed: ValueError: no luck"
        f" ({installed.package / '__init__.py'}, line 1)"
    )


def test_blocked_op_gives_the_variable(site: Site) -> None:
    site.install("first")
    assert message(site, "first", **{DISABLE: "first"}) == (
        "torch.ops.custom_pypto has no op 'first': it belongs to the plugin 'first'"
        " (custom-pypto-first 0.1.0), which is blocked: CUSTOM_PYPTO_DISABLE names it; take it out"
        " of the variable to load it"
    )


def test_op_of_two_plugins_that_are_not_loaded_gives_both(site: Site) -> None:
    site.install("one", ops=["same"])
    site.install("two", ops=["same"])
    text = message(site, "same")
    assert "the plugin 'one' (custom-pypto-one 0.1.0), which is rejected: the plugin" in text
    assert "; and to the plugin 'two' (custom-pypto-two 0.1.0), which is rejected: " in text


def test_unknown_op_gives_similar_ones_and_says_how_ops_are_installed(site: Site) -> None:
    site.install("add_custom")
    assert message(site, "add_costum") == (
        "torch.ops.custom_pypto has no op 'add_costum': no installed plugin provides it; installed"
        " ops with a similar name: add_custom; each op is a wheel of its own: in a clone of the"
        " project, `pip install --no-build-isolation ./plugins/<name>`; `custom-pypto list` shows"
        " what is installed"
    )


def test_op_that_may_be_of_a_plugin_without_a_manifest_gives_its_reason(site: Site) -> None:
    site.install("broken").manifest.unlink()
    text = message(site, "broken")
    assert text.startswith(
        "torch.ops.custom_pypto has no op 'broken': it may belong to the plugin 'broken'"
        " (custom-pypto-broken 0.1.0), which is rejected: no manifest: "
    )
    assert "; no other installed plugin provides it; each op is a wheel of its own" in text


def test_help_gives_schemas_and_plugin(site: Site) -> None:
    site.install("first", ops=["two", "two.overload"])
    assert site.load("""
        import inspect
        inspect.getdoc(ops.two)
        """) == (
        "two(Tensor x) -> Tensor\n\ntwo.overload(Tensor x) -> Tensor\n\nAn op of the plugin 'first'"
        " (custom-pypto-first 0.1.0); `custom-pypto info two` shows more."
    )


def test_op_that_no_plugin_provides_has_no_help(site: Site) -> None:
    given = site.load("""
        library = torch.library.Library("custom_pypto", "FRAGMENT")
        library.define("foreign(Tensor x) -> Tensor")
        ops.foreign.__doc__
        """)
    assert given == ""


def test_namespace_that_somebody_holds_already_explains_too(site: Site) -> None:
    given = site.run(
        """
        import torch
        held = torch.ops.custom_pypto
        import custom_pypto.core
        try: held.nothing
        except AttributeError as error: give([str(error)[:50], held is torch.ops.custom_pypto])
        """
    )
    assert given == ["torch.ops.custom_pypto has no op 'nothing': no ins", True]


FOREIGN = """
library = torch.library.Library("other", "DEF")
library.define("one(Tensor x) -> Tensor")
"""
# What is done with the namespace, and what comes of it. Its ops are `one` and `two.overload`.
USES = {
    "[hasattr(ops, 'one'), hasattr(ops, 'other'), getattr(ops, 'other', 7)]": [True, False, 7],
    "[name for name in dir(ops) if not name.startswith('_')]": ["name", "one", "two"],
    # Iteration gives the ops that were used, as in torch.
    "ops.two; list(ops)": ["two"],
    "ops.one is ops.one": True,
    "[ops.one.__module__, torch.ops.other.one.__module__]": [
        "torch._ops.custom_pypto",
        "torch._ops.other",
    ],
    # Nobody is asked for dunder names.
    "torch._C._jit_get_operation = None; hasattr(ops, '__wrapped__')": False,
}


@pytest.mark.parametrize("use", USES)
def test_namespace_is_used_as_torch_s(site: Site, use: str) -> None:
    site.install("first", ops=["one", "two.overload"])
    site.install("broken", "raise ValueError")
    assert site.load(FOREIGN + use.replace("; ", "\n"), quiet=True) == USES[use]


def test_pickle_and_copy_do_with_ops_what_they_do_without_core(site: Site) -> None:
    site.install("first", FAKES)
    given = site.run(
        """
        import copy, pickle, torch, custom_pypto.core
        library = torch.library.Library("other", "DEF")
        library.define("first(Tensor x) -> Tensor")
        def outcome(do, value):
            try: return type(do(value)).__name__
            except Exception as error: return type(error).__name__
        def outcomes(namespace):
            # Not a packet: torch never ends to copy one.
            values = (namespace, namespace.first.default)
            return [outcome(do, value) for do in (copy.copy, pickle.dumps) for value in values]
        give([outcomes(torch.ops.custom_pypto), outcomes(torch.ops.other)])
        """
    )
    ours, others = given
    assert ours == others


# A module that calls the op, the ways in which torch keeps it, and what a call then gives.
MODULE = """
import copy, io
class Model(torch.nn.Module):
    def forward(self, x): return ops.first(x)
def saved(save, load, *what, **options):
    file = io.BytesIO()
    save(*what, file)
    file.seek(0)
    return load(file, **options)
"""
KEPT = {
    "copied": "copy.deepcopy(torch.fx.symbolic_trace(Model()))(torch.ones(1)).tolist()",
    "traced": """
        traced = torch.fx.symbolic_trace(Model())
        saved(torch.save, torch.load, traced, weights_only=False)(torch.ones(1)).tolist()
        """,
    "exported": """
        size = torch.export.Dim("size", min=2, max=64)
        program = torch.export.export(Model(), (torch.ones(3),), dynamic_shapes=({0: size},))
        saved(torch.export.save, torch.export.load, program).module()(torch.ones(5)).tolist()
        """,
    "scripted": "import scripted\ntorch.jit.script(scripted.call)(torch.ones(1)).tolist()",
}


@pytest.mark.parametrize("how", KEPT)
def test_code_that_calls_the_op_can_be_kept(site: Site, how: str) -> None:
    site.install("first", FAKES)
    (site.folder / "scripted.py").write_text(
        "import torch\ndef call(x: torch.Tensor): return torch.ops.custom_pypto.first(x)\n",
        encoding="utf-8",
    )
    given = site.load(MODULE + textwrap.dedent(KEPT[how]), quiet=True)
    assert given == [1] * (5 if how == "exported" else 1)


@pytest.mark.parametrize(
    "how", ["torch.ops.custom_pypto.first", "torch.ops.custom_pypto.first.default"]
)
def test_compiled_function_calls_the_op(site: Site, how: str) -> None:
    site.install("first", FAKES)
    assert site.load(
        f"""
        graphs = []
        def backend(graph, inputs):
            graphs.append([str(node.target) for node in graph.graph.nodes])
            return graph
        compiled = torch.compile(lambda x: {how}(x) + 1, backend=backend, fullgraph=True)
        [compiled(torch.ones(1)).item(), len(graphs), "custom_pypto.first" in str(graphs)]
        """,
        quiet=True,
    ) == [2, 1, True]


def test_hasattr_of_a_missing_op_works_in_a_compiled_function(site: Site) -> None:
    given = site.load(
        """
        def choose(x):
            return x + 1 if hasattr(ops, "nothing") else x + 2
        torch.compile(choose, backend="eager", fullgraph=True)(torch.ones(1)).item()
        """,
        quiet=True,
    )
    assert given == 3


LOOKS_UP_ITSELF = "import torch; EARLY = torch.ops.custom_pypto.first"


def test_op_that_its_plugin_looked_up_stays_the_same_object(site: Site) -> None:
    site.install("first", LOOKS_UP_ITSELF)
    given = site.run(
        """
        import threading, custom_pypto.core, custom_pypto_first, torch
        found = []
        start = threading.Barrier(8)
        def look():
            start.wait()
            found.append(torch.ops.custom_pypto.first)
        threads = [threading.Thread(target=look) for _ in range(8)]
        for each in threads: each.start()
        for each in threads: each.join()
        is_one = all(each is custom_pypto_first.EARLY for each in found)
        give([is_one, list(torch.ops.custom_pypto), found[0].__doc__.splitlines()[0]])
        """
    )
    assert given == [True, ["first"], "first(Tensor x) -> Tensor"]


def test_op_that_a_failing_plugin_looked_up_is_gone(site: Site) -> None:
    site.install("first", f"{LOOKS_UP_ITSELF}; raise ValueError")
    assert site.load('[list(ops), hasattr(ops, "first")]', quiet=True) == [[], False]
