"""The stand-in for torchair that converters are tested with."""

import importlib
import sys
from pathlib import Path

import pytest
import torch
from custom_pypto_testing import Graph, GraphTensor
from custom_pypto_testing.torchair_graph import stand_in

CONVERTER = """
from torchair import ge
from torchair.ge import attr

def convert(x, k):
    low, high = ge.custom_op("Split", inputs={"x": x}, attrs={"k": attr.Int(k)}, outputs=["l", "h"])
    high = ge.Cast(high, dst_type=ge.DataType.DT_BF16)
    return ge.custom_op("Join", inputs={"x": [low, high, x]}, outputs=[("y", 2)])
"""


def test_nodes_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torchair_graph: Graph
) -> None:
    (tmp_path / "converting.py").write_text(CONVERTER)
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("converting").convert(GraphTensor("x", 3), 2) == ["y0", "y1"]
    assert torchair_graph.nodes == [
        ("Split", {"x": "x"}, {"k": 2}),
        ("Join", {"x": ["l", "bf16(h)", "x"]}, {}),
    ]
    ((inputs, _),) = torchair_graph.of_type("Join")
    assert [each.op_type for each in inputs["x"]] == ["Split", "Cast", ""]


@pytest.mark.parametrize(
    "taken",
    [
        "from torchair import ge",
        "from torchair.ge import custom_op",
        "from torchair.core import _torchair as t; definition = t.get_registered_ir_def; del t",
        "from torchair import ge; Int = ge.attr.Int; del ge",
    ],
)
def test_what_took_a_part_of_the_stand_in_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    (tmp_path / "taking.py").write_text(taken)
    (tmp_path / "taking_nothing.py").write_text("import sys; nothing = None")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.MonkeyPatch.context() as patch, stand_in(patch):
        importlib.import_module("taking")
        importlib.import_module("taking_nothing")
    assert {"taking", "torchair"}.isdisjoint(sys.modules)
    assert sys.modules.pop("taking_nothing")


def test_a_tensor_has_the_sizes_of_its_meta() -> None:
    tensor = GraphTensor("x", 2, 3, dtype=torch.float32)
    assert (tensor, tensor.symsize, tensor.rank, tensor.dtype) == ("x", (2, 3), 2, "float")
    tensor.set_meta(tensor.meta.new_empty(4, dtype=torch.int64))
    assert (tensor.symsize, tensor.rank, tensor.dtype) == ((4,), 1, "int64")
