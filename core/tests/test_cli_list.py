"""custom-pypto list."""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace

import pytest
from cli_records import ADD, BROKEN, core_with
from custom_pypto_cli import main


def test_shows_an_aligned_table_with_a_reason_below_what_is_not_loaded(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "custom_pypto.core", core_with(ADD, BROKEN))
    assert main(["list"]) == 0
    assert capsys.readouterr().out == (
        "PLUGIN      VERSION  STATUS       OPS\n"
        "add_custom  0.1.0    loaded       add_custom, add_custom_backward\n"
        "broken      -        quarantined  -\n"
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
    }
    assert broken["status"] == "quarantined"
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
