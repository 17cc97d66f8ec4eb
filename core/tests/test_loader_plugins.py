"""Plugins that load, each in a Python of its own: ops, order, records, samples."""

import hashlib

from custom_pypto_contract.variables import DISABLE
from loading import FAKES, HOOKS
from plugin_factory import Site


def test_the_order_in_which_plugins_load(site: Site) -> None:
    site.install("ant", requires_ops=["zebra"])
    site.install("zebra")
    site.install("cat")
    site.install("bee", "raise ValueError")
    site.install("asp").forge(core_abi=[9, 0])
    loaded = site.load("[p.name for p in core.plugins()]", quiet=True)
    assert loaded == ["cat", "zebra", "ant", "asp", "bee"]


def test_record_of_a_loaded_plugin(site: Site) -> None:
    installed = site.install("first", version="1.2.3", code=FAKES)
    installed.forge(opp="opp")
    sha256 = hashlib.sha256(installed.library.read_bytes()).hexdigest()
    assert site.load("""
        (plugin,) = core.plugins()
        (op,) = plugin.ops
        [
            [plugin.status, plugin.reason, plugin.load_time > 0],
            [plugin.distribution, plugin.version, plugin.library_sha256],
            [str(each) for each in (plugin.folder, plugin.library, plugin.opp)],
            [op.name, op.schema, op.plugin, op.dispatch_keys],
            [core.ops() == (op,), core.samples("first"), core.reference("first")],
        ]
        """) == [
        ["loaded", "", True],
        ["custom-pypto-first", "1.2.3", sha256],
        [str(installed.package), str(installed.library), str(installed.package / "opp")],
        ["first", "first(Tensor x) -> Tensor", "first", ["CPU", "Meta"]],
        [True, [], None],
    ]


def test_record_of_a_plugin_that_is_not_loaded(site: Site) -> None:
    site.install("first")
    code = "[[[p.status, p.load_time, p.ops[0].dispatch_keys] for p in core.plugins()], core.ops()]"
    assert site.load(code, **{DISABLE: "first"}) == [[["blocked", 0.0, []]], []]


SAMPLES = """
@hookimpl
def custom_pypto_samples(): return {"first": lambda device: [SampleInput((device,), name="one")]}
@hookimpl
def custom_pypto_references(): return {"first": Reference(abs)}
"""


def test_samples_and_reference_come_from_the_plugin(site: Site) -> None:
    site.install("first", HOOKS + SAMPLES)
    site.install("second", HOOKS + SAMPLES)
    sample, function, unknown, failed = site.load("""
        (sample,) = core.samples("first", "cpu")
        [
            [sample.args, sample.name],
            core.reference("first").function(-2),
            refusal(core.samples, "nothing", error=LookupError),
            refusal(core.samples, "second", error=core.PluginError),
        ]
        """)
    assert (sample, function) == ([["cpu"], "one"], 2)
    assert unknown.startswith("torch.ops.custom_pypto has no op 'nothing'")
    assert failed == (
        "the plugin 'second' (custom-pypto-second 0.1.0): custom_pypto_samples: 'first' is not an"
        " op of this plugin; its ops are 'second'"
    )


def test_without_a_plugin_there_is_nothing(site: Site) -> None:
    assert site.load("[core.plugins(), core.ops()]") == [[], []]
