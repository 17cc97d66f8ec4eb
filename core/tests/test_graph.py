"""Converters reach torchair whenever and however it is imported; torchair is a stand-in here."""

import pytest
from manifests import contract_of
from plugin_factory import Site

TORCHAIR = """
registered = []
def register_fx_node_ge_converter(op):
    return lambda converter: registered.append([str(op), converter.__name__])
"""
# torch_npu has torchair as a package of its own, and a stand-in that imports it on first use.
TORCH_NPU = """
import sys
class Lazy:
    module = None
    def __getattr__(self, name):
        if self.module is None:
            if name not in ("__spec__", "__path__"):
                raise AttributeError(f"touched {name} of torchair, which is not imported")
            import torch_npu.dynamo.torchair
            Lazy.module = sys.modules["torch_npu.dynamo.torchair"]
        return getattr(self.module, name)
sys.modules["torchair"] = Lazy()
"""
PLUGIN = """
from custom_pypto_plugin import hookimpl
@hookimpl
def custom_pypto_converters():
    import torchair
    assert hasattr(torchair, "register_fx_node_ge_converter")
    def convert(x): pass
    return {"first": convert, "second.overload": convert}
"""
OPS = ["first", "second.overload"]
BOTH = [["custom_pypto.first.default", "convert"], ["custom_pypto.second.overload", "convert"]]
REGISTERED = "import torchair; give(torchair.registered)"


def write(site: Site, module: str, code: str) -> None:
    folder = site.folder.joinpath(*module.split("."))
    folder.mkdir()
    (folder / "__init__.py").write_text(code, encoding="utf-8")


@pytest.fixture
def standalone(site: Site) -> Site:
    """A plugin with converters, and torchair as a package of its own."""
    site.install("acme", PLUGIN, ops=OPS)
    write(site, "torchair", TORCHAIR)
    return site


@pytest.fixture
def in_torch_npu(site: Site) -> Site:
    """A plugin with converters, and torchair as it comes in torch_npu."""
    site.install("acme", PLUGIN, ops=OPS)
    write(site, "torch_npu", "")
    write(site, "torch_npu.dynamo", TORCH_NPU)
    # As the real one: its own modules are imported by the short name.
    write(site, "torch_npu.dynamo.torchair", "import torchair.inner\n" + TORCHAIR)
    write(site, "torch_npu.dynamo.torchair.inner", "")
    return site


FAILS = """sys.modules["torchair.inner"] = None
try: import torch_npu.dynamo.torchair
except ImportError: del sys.modules["torchair.inner"]
"""
# Where torchair is, and the order of imports.
IMPORTS = [
    ("standalone", "import custom_pypto.core"),
    ("standalone", "import torchair, custom_pypto.core"),
    ("standalone", "import custom_pypto.core as core, torchair; core.plugins(); import torchair"),
    ("in_torch_npu", "import custom_pypto.core, torch_npu.dynamo"),
    ("in_torch_npu", "import torch_npu.dynamo, torchair, custom_pypto.core"),
    ("in_torch_npu", "import torch_npu.dynamo, torch_npu.dynamo.torchair, custom_pypto.core"),
    ("in_torch_npu", "import custom_pypto.core, torch_npu.dynamo.torchair"),
    ("in_torch_npu", f"import sys, custom_pypto.core; {FAILS}import torch_npu.dynamo.torchair"),
]


@pytest.mark.parametrize(("place", "imports"), IMPORTS)
def test_each_is_registered_once(request: pytest.FixtureRequest, place: str, imports: str) -> None:
    assert request.getfixturevalue(place).run(imports, REGISTERED) == BOTH


def test_torchair_has_the_loader_of_python(standalone: Site) -> None:
    code = "import custom_pypto.core, torchair; give(type(torchair.__spec__.loader).__name__)"
    assert standalone.run(code) == "SourceFileLoader"


def test_core_imports_no_torchair(in_torch_npu: Site) -> None:
    code = "import sys, torch_npu.dynamo\ncore.plugins()\n[*sys.modules]"
    assert "torch_npu.dynamo.torchair" not in in_torch_npu.load(code)


def test_import_system_is_as_without_converters_or_torchair(site: Site) -> None:
    code = """
        import importlib.util, sys
        before = list(sys.meta_path)
        import custom_pypto.core
        try: import torchair
        except ModuleNotFoundError as error:
            give([error.name, importlib.util.find_spec("torchair"), sys.meta_path == before])
    """
    site.install("first")
    assert site.run(code) == ["torchair", None, True]
    site.install("acme", PLUGIN, ops=["third"])
    assert site.run(code) == ["torchair", None, False]


def test_converters_that_fail_give_one_warning(site: Site) -> None:
    write(site, "torchair", TORCHAIR)
    site.install("acme", PLUGIN.replace("import torchair", "raise SystemExit('no')"), ops=OPS)
    site.install(
        "second",
        PLUGIN.replace('"first": convert, ', "").replace('"second.overload"', '"third"'),
        ops=["third"],
    )
    code = """
        import warnings, torch, custom_pypto.core
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import torchair
        give([
            [[w.category.__name__, str(w.message)] for w in caught],
            torchair.registered,
            torch.ops.custom_pypto.first(torch.ones(1)).item(),
        ])
    """
    ((category, message),), registered, result = site.run(code)
    assert category == "PluginWarning"
    assert message.startswith(
        "the torchair converters of the plugin 'acme' were not registered, so its ops cannot be"
        " compiled in torchair's graph engine: custom_pypto_converters raised SystemExit: no"
    )
    assert registered == [["custom_pypto.third.default", "convert"]]
    assert result == 1


def test_plugin_that_was_taken_back_is_not_asked_for_converters(site: Site) -> None:
    write(site, "torchair", TORCHAIR)
    op = contract_of('[acme]\nschema = "acme(Tensor x) -> Tensor"\nnpu.graph = "Acme(x=x) -> y"')
    site.install("acme").forge(ops=[{"name": "acme", **op.data}])
    site.install("broken", "raise ValueError")
    code = "try: import custom_pypto.core\nexcept RuntimeError: pass"
    done = site.start(code, REGISTERED, CUSTOM_PYPTO_STRICT="1")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_converters_are_registered_when_torchair_imports_core(standalone: Site) -> None:
    path = standalone.folder / "torchair" / "__init__.py"
    path.write_text("import custom_pypto.core\n" + TORCHAIR, encoding="utf-8")
    # It is incomplete when core is loaded: they come with the first use of an op.
    code = "import torchair, torch; torch.ops.custom_pypto.first"
    assert standalone.run(code, REGISTERED) == BOTH


def test_torchair_that_somebody_put_there_gets_them_on_the_next_occasion(site: Site) -> None:
    site.install("acme", PLUGIN, ops=OPS)
    code = f"""
        import sys, types, custom_pypto.core as core
        torchair = sys.modules["torchair"] = types.ModuleType("torchair")
        exec({TORCHAIR!r}, vars(torchair))
        core.plugins()
    """
    assert site.run(code, REGISTERED) == BOTH
