"""custom-pypto info."""

from __future__ import annotations

import json
import sys

import pytest
from cli_records import ADD, ADD_KERNEL, BROKEN, MISSING_KERNEL, core_with
from custom_pypto_cli import main


@pytest.fixture(autouse=True)
def _core(monkeypatch):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(ADD, BROKEN))


@pytest.fixture
def _summary(monkeypatch, tmp_path):
    info = tmp_path / "custom_pypto_add_custom-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: custom-pypto-add-custom\nVersion: 0.1.0\nSummary: Adds.\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_summary")
def test_shows_a_plugin_with_its_ops(capsys):
    assert main(["info", "add_custom"]) == 0
    assert capsys.readouterr().out == (
        "plugin        add_custom\n"
        "summary       Adds.\n"
        "distribution  custom-pypto-add-custom 0.1.0\n"
        "status        loaded\n"
        "library       /site/custom_pypto_add_custom/lib/libcustom_pypto_add_custom.so\n"
        "CPU ISA       avx2\n"
        "opp folder    -\n"
        "\n"
        "op       torch.ops.custom_pypto.add_custom\n"
        "schema   add_custom(Tensor self, Tensor other) -> Tensor\n"
        "kernels  CPU, PrivateUse1\n"
        "\n"
        "op       torch.ops.custom_pypto.add_custom_backward\n"
        "schema   add_custom_backward(Tensor self) -> (Tensor, Tensor)\n"
        "kernels  CPU\n"
    )


@pytest.mark.usefixtures("_summary")
def test_the_summary_is_not_that_of_metadata_left_over(monkeypatch, tmp_path, capsys):
    info = tmp_path / "earlier" / "custom_pypto_add_custom-0.0.9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: custom-pypto-add-custom\nVersion: 0.0.9\nSummary: Old.\n")
    monkeypatch.syspath_prepend(str(info.parent))
    assert main(["info", "add_custom"]) == 0
    assert "summary       Adds.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        "add_custom_backward",
        "custom_pypto::add_custom_backward",
        "custom_pypto.add_custom_backward",
        "torch.ops.custom_pypto.add_custom_backward",
        "torch.ops.custom_pypto.add_custom_backward.default",
    ],
)
def test_an_op_may_be_written_as_torch_writes_it(name, capsys):
    assert main(["info", "--json", name]) == 0
    (plugin,) = json.loads(capsys.readouterr().out)["plugins"]
    assert plugin["name"] == "add_custom"
    assert [op["name"] for op in plugin["ops"]] == ["add_custom_backward"]


def test_a_distribution_may_be_named(capsys):
    assert main(["info", "custom-pypto-broken"]) == 0
    assert "plugin        broken\n" in capsys.readouterr().out


def test_a_plugin_that_is_not_loaded_shows_why(capsys):
    assert main(["info", "broken"]) == 0
    lines = capsys.readouterr().out.splitlines()
    status = lines.index("status        rejected")
    assert lines[status + 1] == "              its library is missing; reinstall it"


def test_an_instruction_set_that_is_lacking_is_reported(monkeypatch, capsys):
    core = core_with(ADD)

    def refuse(plugin):
        raise core.PluginError("no kernels for it")

    monkeypatch.setattr(core, "cpu_isa", refuse)
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core)
    assert main(["info", "add_custom"]) == 0
    assert "CPU ISA       none: no kernels for it\n" in capsys.readouterr().out


@pytest.mark.usefixtures("_summary")
def test_json_has_the_summary(capsys):
    assert main(["info", "add_custom", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plugins"][0]["summary"] == "Adds."


def test_an_unknown_name_gives_near_ones(capsys):
    assert main(["info", "ad_custom"]) == 2
    assert capsys.readouterr().err == (
        "custom-pypto info: no installed op or plugin is called 'ad_custom';"
        " did you mean add_custom, add_custom_backward? `custom-pypto list` shows what is"
        " installed; every op is installed as a wheel: `pip install custom-pypto-<name>`\n"
    )


def test_a_name_that_is_like_no_other_points_to_the_list(capsys):
    assert main(["info", "zzz"]) == 2
    assert "`custom-pypto list` shows what is installed" in capsys.readouterr().err


def test_shows_what_would_run_on_an_npu(monkeypatch, capsys):
    core = core_with(ADD, kernels=(ADD_KERNEL, MISSING_KERNEL))
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core)
    assert main(["info", "add_custom"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "on an NPU  aclnnAdd of CANN (/cann/lib64/libopapi.so)" in lines
    start = lines.index("launches on an NPU  none on this machine: aclnnOther would do")
    assert lines[start + 1].strip() == "searched CANN: libopapi.so: not there"


def test_json_has_what_would_run_on_an_npu(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(ADD, kernels=(ADD_KERNEL,)))
    assert main(["info", "--json", "add_custom"]) == 0
    [plugin] = json.loads(capsys.readouterr().out)["plugins"]
    assert plugin["npu_kernels"] == [
        {
            "op": "add_custom",
            "symbols": ["aclnnAddCustom", "aclnnAdd"],
            "symbol": "aclnnAdd",
            "library": "/cann/lib64/libopapi.so",
            "origin": "CANN",
            "searched": [],
        }
    ]
