"""Converters look up the graph engine's operators; torchair is a stand-in here."""

import sys
from types import SimpleNamespace

import pytest
from custom_pypto.core.ge_operators import is_registered
from custom_pypto_testing import Graph


def test_says_whether_the_graph_engine_has_the_operator(torchair_graph: Graph) -> None:
    torchair_graph.registered.add("MyOp")
    assert is_registered("MyOp")
    assert not is_registered("OtherOp")


NO_ENGINE = SimpleNamespace(get_registered_ir_def=lambda op_type: ("None", [], [], []))


@pytest.mark.usefixtures("torchair_graph")
@pytest.mark.parametrize(
    ("module", "text"),
    [
        (NO_ENGINE, "operator MyOp is unknown: torchair found no libge_runner"),
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
