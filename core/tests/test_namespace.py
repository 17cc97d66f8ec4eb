"""torch.ops.custom_pypto: what it says of ops that are not there, and what torch does with it."""

import re

from custom_pypto_contract.variables import DISABLE
from loading import FAKES
from plugin_factory import Site

NO_OP = "torch.ops.custom_pypto has no op {!r}: "
OF = "the plugin {0!r} (custom-pypto-{0} 0.1.0), which "
EACH_ITS_WHEEL = (
    "each op is a wheel of its own: in a clone of the project, `pip install --no-build-isolation"
    " ./plugins/<name>`; `custom-pypto list` shows what is installed"
)
# An op that is not there, and what a user is told who looks it up; "..." is any text.
ABSENT = {
    "broken": f"it belongs to {OF.format('broken')}failed: importing its module"
    " 'custom_pypto_broken' failed: ValueError: no luck (.../__init__.py, line 1)",
    "blocked": f"it belongs to {OF.format('blocked')}is blocked: CUSTOM_PYPTO_DISABLE names it;"
    " take it out of the variable to load it",
    "same": f"it belongs to {OF.format('one')}is rejected: the plugin ...; and to"
    f" {OF.format('two')}is rejected: ...",
    "add_costum": f"it may belong to {OF.format('empty')}is rejected: no manifest: ...; no other"
    f" installed plugin provides it; installed ops with a similar name: add_custom;"
    f" {EACH_ITS_WHEEL}",
}


def test_an_op_that_is_absent_says_why(site: Site) -> None:
    site.install("add_custom")
    site.install("broken", "raise ValueError('no luck')")
    site.install("blocked")
    for name in ("one", "two"):
        site.install(name, ops=["same"])
    site.install("empty").manifest.unlink()
    code = f"[refusal(getattr, ops, op, error=AttributeError) for op in {[*ABSENT]}]"
    found = site.load(code, quiet=True, **{DISABLE: "blocked"})
    for (op, reason), text in zip(ABSENT.items(), found, strict=True):
        pattern = re.escape(NO_OP.format(op) + reason).replace(r"\.\.\.", ".*")
        assert re.fullmatch(pattern, text), text


def test_help_gives_schemas_and_plugin_if_there_is_one(site: Site) -> None:
    site.install("first", ops=["two", "two.overload"])
    assert site.load("""
        import inspect
        library = torch.library.Library("custom_pypto", "FRAGMENT")
        library.define("foreign(Tensor x) -> Tensor")
        [inspect.getdoc(ops.two), ops.foreign.__doc__]
        """) == [
        (
            "two(Tensor x) -> Tensor\n\ntwo.overload(Tensor x) -> Tensor\n\nAn op of the plugin"
            " 'first' (custom-pypto-first 0.1.0); `custom-pypto info two` shows more."
        ),
        "",
    ]


def test_namespace_that_somebody_holds_already_explains_too(site: Site) -> None:
    given = site.run(
        """
        import torch
        held = torch.ops.custom_pypto
        import custom_pypto.core
        try: held.nothing
        except AttributeError as error: give([str(error), held is torch.ops.custom_pypto])
        """
    )
    text = f"{NO_OP.format('nothing')}no installed plugin provides it; {EACH_ITS_WHEEL}"
    assert given == [text, True]


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
    "[type(each).__name__ for each in (ops.one, ops.one.default)]": [
        "OpOverloadPacket",
        "OpOverload",
    ],
    "[ops.one.__module__, torch.ops.other.one.__module__]": [
        "torch._ops.custom_pypto",
        "torch._ops.other",
    ],
    # Nobody is asked for dunder names.
    "torch._C._jit_get_operation = None; hasattr(ops, '__wrapped__')": False,
}


def test_namespace_is_used_as_torch_s(site: Site) -> None:
    site.install("first", ops=["one", "two.overload"])
    site.install("broken", "raise ValueError")
    for use, result in USES.items():
        assert site.load(FOREIGN + use.replace("; ", "\n"), quiet=True) == result


def test_code_that_calls_the_op_can_be_kept(site: Site) -> None:
    site.install("first", FAKES)
    (site.folder / "scripted.py").write_text(
        "import torch\ndef call(x: torch.Tensor): return torch.ops.custom_pypto.first(x)\n",
        encoding="utf-8",
    )
    given = site.load(
        """
        import copy, io, scripted
        traced, file = torch.fx.symbolic_trace(scripted.call), io.BytesIO()
        torch.save(traced, file)
        file.seek(0)
        kept = copy.deepcopy(traced), torch.load(file, weights_only=False)
        [each(torch.ones(1)).item() for each in (*kept, torch.jit.script(scripted.call))]
        """,
        quiet=True,
    )
    assert given == [1, 1, 1]


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
        import custom_pypto.core, custom_pypto_first, torch
        found = torch.ops.custom_pypto.first
        is_one = found is custom_pypto_first.EARLY
        give([is_one, list(torch.ops.custom_pypto), found.__doc__.splitlines()[0]])
        """
    )
    assert given == [True, ["first"], "first(Tensor x) -> Tensor"]


def test_op_that_a_failing_plugin_looked_up_is_gone(site: Site) -> None:
    site.install("first", f"{LOOKS_UP_ITSELF}; raise ValueError")
    assert site.load('[list(ops), hasattr(ops, "first")]', quiet=True) == [[], False]
