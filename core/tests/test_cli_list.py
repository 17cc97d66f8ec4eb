"""custom-pypto list."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_records import ADD, BROKEN, core_with
from custom_pypto_cli import main


def test_shows_an_aligned_table_with_a_reason_below_what_is_not_loaded(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(ADD, BROKEN))
    assert main(["list"]) == 0
    assert capsys.readouterr().out == (
        "PLUGIN      VERSION  STATUS    OPS\n"
        "add_custom  0.1.0    loaded    add_custom, add_custom_backward\n"
        "broken      -        rejected  -\n"
        "  its library is missing; reinstall it\n"
    )


def test_json_gives_the_records(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(ADD, BROKEN))
    assert main(["list", "--json"]) == 0
    add, broken = json.loads(capsys.readouterr().out)["plugins"]
    assert add == {
        "name": "add_custom",
        "version": "0.1.0",
        "distribution": "custom-pypto-add-custom",
        "status": "loaded",
        "reason": "",
        "ops": [
            {
                "name": "add_custom",
                "schema": "add_custom(Tensor self, Tensor other) -> Tensor",
                "dispatch_keys": ["CPU", "PrivateUse1"],
            },
            {
                "name": "add_custom_backward",
                "schema": "add_custom_backward(Tensor self) -> (Tensor, Tensor)",
                "dispatch_keys": ["CPU"],
            },
        ],
        "library": "/site/custom_pypto_add_custom/lib/libcustom_pypto_add_custom.so",
        "opp": "",
        "load_time": 0.25,
        "leftovers": [],
    }
    assert broken["status"] == "rejected"
    assert broken["library"] == ""


def test_without_a_plugin_it_says_how_to_install_one(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with())
    assert main(["list"]) == 0
    assert "pip install custom-pypto-add-custom" in capsys.readouterr().out


def test_without_a_plugin_json_is_an_empty_list(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with())
    assert main(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"plugins": []}


def test_strict_mode_does_not_hide_the_list(monkeypatch):
    monkeypatch.setenv("CUSTOM_PYPTO_STRICT", "1")
    seen = []

    def plugins():
        seen.append(os.environ.get("CUSTOM_PYPTO_STRICT"))
        return ()

    monkeypatch.setitem(sys.modules, "custom_pypto.core", SimpleNamespace(plugins=plugins))
    assert main(["list"]) == 0
    assert seen == [None]


@pytest.mark.parametrize("command", [["list"], ["info", "add_custom"]])
def test_a_core_that_cannot_be_imported_points_to_the_doctor(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", None)
    assert main(command) == 1
    errors = capsys.readouterr().err
    assert "importing custom_pypto.core failed: ModuleNotFoundError: " in errors
    assert "custom-pypto doctor" in errors


HOSTILE = replace(
    BROKEN, version="1\x1b[31m\udcff", reason="first \u202eline\r\nsecond l\xefne\x07"
)


def on_ascii(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Return what the command prints to a terminal that takes ASCII alone, as under LANG=C."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(list(arguments)) == 0
    stream.seek(0)
    return stream.read()


@pytest.mark.parametrize("command", [["list"], ["info", "broken"]])
def test_text_that_the_terminal_lacks_is_escaped(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(HOSTILE))
    shown = on_ascii(monkeypatch, *command)
    assert r"1\x1b[31m\udcff" in shown
    assert r"second l\xefne\x07" in shown


@pytest.mark.parametrize("command", [["list"], ["info", "broken"]])
def test_nothing_of_a_plugin_acts_on_the_terminal(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(HOSTILE))
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert set("\x1b\r\x07\u202e\udcff").isdisjoint(shown)
    assert "second l\xefne" in shown


def test_text_that_the_terminal_lacks_is_valid_json(monkeypatch):
    odd = replace(HOSTILE, reason="\x7f\udcff\u202e")
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(odd))
    text = on_ascii(monkeypatch, "list", "--json")
    assert "\x7f" not in text
    assert json.loads(text)["plugins"][0]["reason"] == odd.reason


def test_what_a_command_refuses_cannot_act_on_the_terminal(monkeypatch, capsys):
    def plugins() -> None:
        raise RuntimeError("\x1b[2J")

    monkeypatch.setitem(sys.modules, "custom_pypto.core", SimpleNamespace(plugins=plugins))
    assert main(["list"]) == 1
    assert r"RuntimeError: \x1b[2J" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["list"], ["info", "add_custom"]])
def test_metadata_left_over_of_another_version_is_reported(command, monkeypatch, capsys):
    folder = Path("/site/a folder/custom_pypto_add_custom-0.0.9.dist-info")
    monkeypatch.setitem(
        sys.modules, "custom_pypto.core", core_with(replace(ADD, leftovers=(folder,)), BROKEN)
    )
    assert main(command) == 0
    assert f"delete it: rm -r '{folder}'\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["list"], ["info", "add_custom"]])
def test_op_that_no_device_can_run_is_reported(command, monkeypatch, capsys):
    fake_alone = replace(ADD.ops[0], dispatch_keys=("Meta", "Autograd"))
    plugin = replace(ADD, ops=(fake_alone, ADD.ops[1]))
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(plugin))
    assert main(command) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "warning" in line]
    assert line.split("warning")[1].strip(" :") == (
        "add_custom has no kernel for any device: its plugin registers none; upgrade the plugin:"
        " pip install --upgrade custom-pypto-add-custom; its author registers kernels in C++ or by"
        " the hook custom_pypto_kernels"
    )
