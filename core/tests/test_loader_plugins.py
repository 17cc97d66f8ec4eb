"""Plugins that load, each in a Python of its own: ops, order, records, samples."""

from __future__ import annotations

import hashlib

from custom_pypto_discovery.environment import DISABLE
from loading import FAKES, HOOKS, REPORT
from plugin_factory import Site


def test_every_installed_plugin_is_loaded_and_its_ops_work(site: Site) -> None:
    site.install("first", ops=["one", "two.overload"])
    site.install("second")
    assert site.load("""
        [
            [p.name for p in core.plugins() if p.status == "loaded"],
            [op.name for op in core.ops()],
            ops.one(torch.ones(2)).tolist(),
            ops.two.overload(torch.ones(2)).tolist(),
        ]
        """) == [["first", "second"], ["one", "second", "two.overload"], [1, 1], [1, 1]]


def test_importing_the_package_imports_core(site: Site) -> None:
    site.install("first")
    assert site.run("import custom_pypto, torch; give(hasattr(torch.ops.custom_pypto, 'first'))")


def test_no_plugin_at_all_is_no_error(site: Site) -> None:
    assert site.load("[core.plugins(), core.ops()]") == [
        [],
        [],
    ]


def test_plugins_load_by_name_after_those_they_require(site: Site) -> None:
    site.install("ant", requires_ops=["zebra"])
    site.install("zebra")
    site.install("cat")
    assert site.load("[p.name for p in core.plugins()]") == ["cat", "zebra", "ant"]


def test_plugins_that_do_not_load_come_last_and_by_name(site: Site) -> None:
    site.install("ant", "raise ValueError")
    site.install("bee")
    site.install("asp").forge(core_abi=[9, 0])
    assert site.load("[p.name for p in core.plugins()]", quiet=True) == ["bee", "ant", "asp"]


# Records


def test_record_of_a_loaded_plugin(site: Site) -> None:
    installed = site.install("first", version="1.2.3", code=FAKES)
    assert site.load("""
        (plugin,) = core.plugins()
        (op,) = plugin.ops
        [
            [plugin.name, plugin.version, plugin.distribution, plugin.status, plugin.reason],
            [str(plugin.library), plugin.opp, plugin.load_time > 0],
            [op.name, op.schema, op.plugin, op.dispatch_keys],
            [core.ops() == (op,)],
        ]
        """) == [
        ["first", "1.2.3", "custom-pypto-first", "loaded", ""],
        [str(installed.library), None, True],
        ["first", "first(Tensor x) -> Tensor", "first", ["CPU", "Meta"]],
        [True],
    ]


def test_record_of_a_plugin_that_is_not_loaded(site: Site) -> None:
    site.install("first")
    assert site.load(
        """
        (plugin,) = core.plugins()
        [plugin.status, plugin.load_time, plugin.ops[0].dispatch_keys, core.ops()]
        """,
        **{DISABLE: "first"},
    ) == ["blocked", 0.0, [], []]


def test_opp_folder_is_in_the_record(site: Site) -> None:
    installed = site.install("first")
    installed.forge(opp="opp")
    assert site.load("str(core.plugins()[0].opp)") == str(installed.package / "opp")


def test_overload_can_have_a_fake_and_a_derivative(site: Site) -> None:
    site.install(
        "first",
        HOOKS
        + """
@hookimpl
def custom_pypto_fakes(): return {"two.overload": fake}
@hookimpl
def custom_pypto_autograd(): return {"two.overload": Autograd(lambda ctx, grad: 3 * grad)}
""",
        ops=["two.overload"],
    )
    assert site.load("""
        x = torch.ones(1, requires_grad=True)
        ops.two.overload(x).sum().backward()
        shape = ops.two.overload(torch.ones(4, device="meta")).shape
        [core.ops()[0].dispatch_keys, x.grad.item(), list(shape)]
        """) == [["CPU", "Meta", "Autograd"], 3, [4]]


def test_fake_refuses_none_where_the_schema_says_tensor(site: Site) -> None:
    site.install(
        "first",
        """
        from custom_pypto_plugin import hookimpl
        @hookimpl
        def custom_pypto_fakes(): return {"two.overload": lambda x, maybe=None, *, y: x + y}
        """,
        ops=["two.overload(Tensor x, Tensor? maybe=None, *, Tensor y) -> Tensor"],
    )
    given = site.run(
        """
        import torch, custom_pypto.core
        from torch._subclasses.fake_tensor import FakeTensorMode
        def call(x, maybe, y):
            try:
                return list(torch.ops.custom_pypto.two.overload(x, maybe, y=y).shape)
            except RuntimeError as error:
                return str(error)
        with FakeTensorMode():
            x = torch.ones(4)
            give([call(x, None, x), call(None, x, x), call(x, x, None), call(None, None, None)])
        """
    )
    refused = "two.overload: argument '{}' must be a tensor, got None".format
    assert given == [[4], refused("x"), refused("y"), refused("x")]


def test_samples_and_reference_come_from_the_plugin(site: Site) -> None:
    site.install(
        "first",
        HOOKS
        + """
@hookimpl
def custom_pypto_samples(): return {"first": lambda device: [SampleInput((device,), name="one")]}
@hookimpl
def custom_pypto_references(): return {"first": Reference(abs)}
""",
    )
    assert site.load("""
        (sample,) = core.samples("first", "cpu")
        [sample.args, sample.name, core.reference("first").function(-2)]
        """) == [["cpu"], "one", 2]


def test_plugin_without_samples_and_reference_gives_none(site: Site) -> None:
    site.install("first")
    code = "import custom_pypto.core as c; give([c.samples('first'), c.reference('first')])"
    assert site.run(code) == [[], None]


def test_samples_of_an_unknown_op_say_what_is_installed(site: Site) -> None:
    done = site.start("import custom_pypto.core as core; core.samples('nothing')")
    assert "LookupError: torch.ops.custom_pypto has no op 'nothing'" in done.stderr


def test_hook_for_samples_that_fails_is_a_plugin_error(site: Site) -> None:
    site.install(
        "first",
        HOOKS
        + """
@hookimpl
def custom_pypto_samples(): return {"furst": list}
""",
    )
    done = site.start("import custom_pypto.core as core; core.samples('first')")
    assert (
        "PluginError: the plugin 'first' (custom-pypto-first 0.1.0): custom_pypto_samples names"
        " 'furst', which is no op of this plugin; did you mean 'first'? its ops are 'first'"
    ) in done.stderr


def test_finder_of_somebody_else_that_raises_does_not_end_the_import(site: Site) -> None:
    site.install("first")
    foreign = """
    import sys
    class Foreign:
        def find_distributions(self, context): raise RuntimeError("not today")
        def find_spec(self, name, path, target=None): return None
    sys.meta_path.insert(0, Foreign())
    """
    assert site.run(foreign, REPORT)["states"] == {"first": "loaded"}


def test_record_says_where_a_plugin_comes_from(site: Site) -> None:
    installed = site.install("first")
    found = site.load("""
        [[str(p.folder), str(p.library), p.library_sha256, p.distribution, p.version]
         for p in core.plugins()]
        """)
    sha256 = hashlib.sha256(installed.library.read_bytes()).hexdigest()
    paths = [str(installed.package), str(installed.library)]
    assert found == [[*paths, sha256, "custom-pypto-first", "0.1.0"]]


def test_record_of_a_plugin_without_a_library_has_its_folder(site: Site) -> None:
    code = f"{HOOKS}@hookimpl\ndef custom_pypto_kernels(): return {{'first': {{'CPU': fake}}}}"
    installed = site.install("first", code, with_library=False)
    found = site.load("[[str(p.folder), p.library, p.library_sha256] for p in core.plugins()]")
    assert found == [[str(installed.package), None, ""]]
