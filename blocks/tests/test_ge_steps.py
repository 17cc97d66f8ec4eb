"""What converters ask of the graph engine; torchair is a stand-in here."""

from typing import Any

import pytest
from custom_pypto_testing import Graph

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
    from custom_pypto_blocks.ge_steps import is_registered_with

    assert not is_registered_with("MyOp", inputs=[], attributes=[], outputs=[])
    torchair_graph.registered.add("MyOp")
    torchair_graph.definitions["MyOp"] = (inputs, outputs, attributes)
    names = {"inputs": ["x", "scale"], "outputs": ["y"], "attributes": ["epsilon"]}
    assert is_registered_with("MyOp", **names) is expected
