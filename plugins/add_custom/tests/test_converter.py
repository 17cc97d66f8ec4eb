"""The torchair converters, run on a stand-in that notes what it is asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def converter(monkeypatch: pytest.MonkeyPatch) -> Any:
    ge = ModuleType("torchair.ge")
    ge.custom_op = lambda kind, **parts: (kind, parts)  # type: ignore[attr-defined]
    ge.Clone = lambda tensor: ("Clone", tensor)  # type: ignore[attr-defined]
    torchair = ModuleType("torchair")
    torchair.ge = ge  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchair", torchair)
    monkeypatch.setitem(sys.modules, "torchair.ge", ge)
    monkeypatch.delitem(sys.modules, "custom_pypto_add_custom.converter", raising=False)
    yield importlib.import_module("custom_pypto_add_custom.converter")
    monkeypatch.delitem(sys.modules, "custom_pypto_add_custom.converter")


def test_add_custom_is_one_node_of_the_type_that_cann_registers(converter: Any) -> None:
    kind, parts = converter.add_custom("first", "second")
    assert kind == "AddCustom"
    assert parts == {"inputs": {"x": "first", "y": "second"}, "outputs": ["z"]}


def test_add_custom_is_a_stock_node_where_that_type_is_not_registered(
    converter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def custom_op(kind: str, **parts: Any) -> Any:
        if kind == "AddCustom":
            raise RuntimeError("No AscendIR AddCustom was found")
        return kind, parts

    monkeypatch.setattr(sys.modules["torchair.ge"], "custom_op", custom_op)
    kind, parts = converter.add_custom("first", "second")
    assert kind == "Add"
    assert parts == {"inputs": {"x1": "first", "x2": "second"}, "outputs": ["y"]}


def test_backward_is_two_copies(converter: Any) -> None:
    assert converter.add_custom_backward("grad") == (("Clone", "grad"), ("Clone", "grad"))


def test_converters_are_imported_only_with_torchair() -> None:
    code = (
        "import sys, custom_pypto.core; print('custom_pypto_add_custom.converter' in sys.modules)"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "False"
