"""Converters look up the graph engine's operators; torchair is a stand-in here."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from custom_pypto.core.ge_operators import is_registered, is_registered_with
from custom_pypto_testing import Graph


def test_says_whether_the_graph_engine_has_the_operator(torchair_graph: Graph) -> None:
    torchair_graph.registered.add("MyOp")
    assert is_registered("MyOp")
    assert not is_registered("OtherOp")
    assert not is_registered_with("OtherOp", inputs=[], attributes=[], outputs=[])


NO_ENGINE = SimpleNamespace(get_registered_ir_def=lambda op_type: ("None", [], [], []))


@pytest.mark.usefixtures("torchair_graph")
@pytest.mark.parametrize(
    ("module", "text"),
    [
        (
            NO_ENGINE,
            "graph engine has the operator MyOp is unknown: torchair found no libge_runner",
        ),
        (object(), "keeps torchair's get_registered_ir_def elsewhere"),
        (None, r"torch_npu 2\.10 to 2\.14 are known to work"),
    ],
)
def test_no_graph_engine_is_an_error(
    monkeypatch: pytest.MonkeyPatch, module: object, text: str
) -> None:
    monkeypatch.delattr(sys.modules["torchair.core"], "_torchair")
    if module is not None:
        monkeypatch.setattr(sys.modules["torchair.core"], "_torchair", module, raising=False)
    with pytest.raises(RuntimeError, match=text):
        is_registered("MyOp")


INPUTS = [("x", "required"), ("scale", "optional")]
OUTPUTS = [("y", "required")]
ATTRIBUTES = [("epsilon", "VT_FLOAT")]


@pytest.mark.parametrize(
    ("inputs", "outputs", "attributes", "expected"),
    [
        (INPUTS, OUTPUTS, ATTRIBUTES, True),
        ([*INPUTS, ("bias", "optional")], OUTPUTS, [*ATTRIBUTES, ("mode", "VT_INT")], True),
        ([*INPUTS, ("bias", "required")], OUTPUTS, ATTRIBUTES, False),
        (INPUTS[:1], OUTPUTS, [*ATTRIBUTES, ("scale", "VT_FLOAT")], False),
        (INPUTS[::-1], OUTPUTS, ATTRIBUTES, False),
        (INPUTS, [*OUTPUTS, ("z", "required")], ATTRIBUTES, False),
        (INPUTS, OUTPUTS, [], False),
    ],
)
def test_says_whether_the_operator_is_registered_with_what_a_node_has(
    torchair_graph: Graph, inputs: Any, outputs: Any, attributes: Any, expected: bool
) -> None:
    torchair_graph.registered.add("MyOp")
    torchair_graph.definitions["MyOp"] = (inputs, outputs, attributes)
    names = {"inputs": ["x", "scale"], "outputs": ["y"], "attributes": ["epsilon"]}
    assert is_registered_with("MyOp", **names) is expected
