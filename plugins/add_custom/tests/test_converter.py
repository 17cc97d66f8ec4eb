"""The torchair converters, run on a stand-in that notes what it is asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Registered:
    """Which operators the graph engine has; as torchair asks for them."""

    def __init__(self) -> None:
        self.types = {"AddCustom", "Add"}

    def get_registered_ir_def(self, op_type: str) -> tuple[str, list[Any], list[Any], list[Any]]:
        return ("SUCCESS" if op_type in self.types else "FAILED", [], [], [])


@pytest.fixture
def registered() -> Registered:
    return Registered()


@pytest.fixture
def converter(registered: Registered, monkeypatch: pytest.MonkeyPatch) -> Any:
    ge: Any = ModuleType("torchair.ge")
    ge.custom_op = lambda kind, **parts: (kind, parts)
    ge.Clone = lambda tensor: ("Clone", tensor)
    ge.DataType = SimpleNamespace(
        DT_FLOAT16="float16", DT_BF16="bfloat16", DT_FLOAT="float32", DT_INT32="int32"
    )
    torchair: Any = ModuleType("torchair")
    torchair.ge = ge
    core: Any = ModuleType("torchair.core")
    core._torchair = registered
    monkeypatch.setitem(sys.modules, "torchair", torchair)
    monkeypatch.setitem(sys.modules, "torchair.core", core)
    monkeypatch.setitem(sys.modules, "torchair.ge", ge)
    monkeypatch.delitem(sys.modules, "custom_pypto_add_custom.converter", raising=False)
    yield importlib.import_module("custom_pypto_add_custom.converter")
    monkeypatch.delitem(sys.modules, "custom_pypto_add_custom.converter")


def tensor(dtype: str) -> Any:
    return SimpleNamespace(dtype=dtype, meta=SimpleNamespace(dtype=f"torch.{dtype}"))


ONE, OTHER = tensor("float32"), tensor("float32")


def test_add_custom_is_one_node_of_the_type_that_cann_registers(converter: Any) -> None:
    kind, parts = converter.add_custom(ONE, OTHER)
    assert kind == "AddCustom"
    assert parts == {"inputs": {"x": ONE, "y": OTHER}, "outputs": ["z"]}


def test_add_custom_is_a_stock_node_where_that_type_is_not_registered(
    converter: Any, registered: Registered
) -> None:
    registered.types.remove("AddCustom")
    kind, parts = converter.add_custom(ONE, OTHER)
    assert kind == "Add"
    assert parts == {"inputs": {"x1": ONE, "x2": OTHER}, "outputs": ["y"]}


def test_an_error_in_making_the_node_is_not_taken_for_a_type_that_is_not_registered(
    converter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def custom_op(kind: str, **parts: Any) -> Any:
        raise RuntimeError(f"{kind}: out of paper")

    monkeypatch.setattr(sys.modules["torchair.ge"], "custom_op", custom_op)
    with pytest.raises(RuntimeError, match="AddCustom: out of paper"):
        converter.add_custom(ONE, OTHER)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_dtype_that_eager_mode_refuses_is_refused(converter: Any, dtype: str) -> None:
    with pytest.raises(RuntimeError, match=f"add_custom: argument 'self' must be .*, got {dtype}"):
        converter.add_custom(tensor(dtype), tensor(dtype))


def test_backward_is_two_copies(converter: Any) -> None:
    assert converter.add_custom_backward("grad") == (("Clone", "grad"), ("Clone", "grad"))


def test_converters_are_imported_only_with_torchair() -> None:
    code = (
        "import sys, custom_pypto.core; print('custom_pypto_add_custom.converter' in sys.modules)"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "False"
