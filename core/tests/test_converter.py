"""The converter that a contract's graph line comes to; torchair is a stand-in here."""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from custom_pypto.core.contracts.kernels import graph_converter
from manifests import contract_of, lazy_contract
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

SCHEMA = (
    "sum_of(Tensor x, Tensor? y, int n, float scale, bool flag, str mode, int[] dims, int k=7)"
    " -> Tensor"
)


class Attributes:
    """torchair.ge.attr: each attribute by its type and value. There are no types besides these."""

    def __getattr__(self, type_: str) -> Callable[[Any], tuple[str, Any]]:
        assert type_ in ("Int", "Float", "Bool", "Str", "ListInt"), type_
        return lambda value: (type_, value)


@pytest.fixture(autouse=True)
def torchair(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchair whose nodes are what they were made of."""
    module: Any = ModuleType("torchair")
    module.ge = SimpleNamespace(
        attr=Attributes(), custom_op=lambda name, **parts: {"name": name, **parts}
    )
    monkeypatch.setitem(sys.modules, "torchair", module)


def node(line: str, *args: Any, contract: str = "", **kwargs: Any) -> Any:
    """Return the node of a call by a graph line; `contract` is the rest of ops.toml."""
    text = f'[sum_of]\nschema = "{SCHEMA}"\n[sum_of.npu]\ngraph = ["{line}"]\n{contract}'
    return graph_converter(lazy_contract(contract_of(text)))(*args, **kwargs)


CALL = ("x", None, 3, 0.5, True, "fast", [2, 0])


LIMIT = '[sum_of.npu.limits.{}]\nrules = [{{ argument = "n", check = "n < 3" }}]'


def test_limits_of_the_operator_s_own_kernel_alone_are_checked() -> None:
    with pytest.raises(RuntimeError, match="sum_of: argument 'n' must be less than 3, got 3"):
        node("Sum(a=x) -> c", *CALL, contract=LIMIT.format("aclnnSum"))
    assert node("Sum(a=x) -> c", *CALL, contract=LIMIT.format("aclnnOther"))["name"] == "Sum"


def test_a_list_of_tensors_is_an_input() -> None:
    made = node("Sum(a=[x, y]) -> c", "first", "second", *CALL[2:])
    assert made["inputs"] == {"a": ["first", "second"]}
    assert "attrs" not in made
    op = contract_of(
        '[op]\nschema = "op(Tensor[] xs, int k) -> Tensor"\nnpu.graph = "Op(x=xs, k=k) -> y"'
    )
    convert = graph_converter(lazy_contract(op))
    assert convert(["first", "second"], 3)["inputs"] == {"x": ["first", "second"]}


@pytest.mark.parametrize(
    ("returns", "line", "returned"),
    [
        ("()", "Op(a=x, b=cache) -> b", None),
        ("Tensor", "Op(a=x, b=cache) -> b, y", "y"),
        ("(Tensor, Tensor)", "Op(a=x, b=cache) -> y, b, z", ("y", "z")),
    ],
)
def test_results_that_are_written_in_place_are_not_returned(
    monkeypatch: pytest.MonkeyPatch, returns: str, line: str, returned: object
) -> None:
    def custom_op(_: str, *, outputs: list[str], **parts: Any) -> Any:
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    monkeypatch.setattr(sys.modules["torchair"].ge, "custom_op", custom_op)
    schema = f"op(Tensor x, Tensor(a!) cache) -> {returns}"
    op = contract_of(f'[op]\nschema = "{schema}"\nnpu.graph = "{line}"')
    assert graph_converter(lazy_contract(op))("x", "cache") == returned
    monkeypatch.setattr(sys.modules["torchair"].ge, "custom_op", lambda *_, **parts: ())
    with pytest.raises(ValueError, match="shorter"):
        graph_converter(lazy_contract(op))("x", "cache")


ATTRIBUTES = {
    "n=n, k=k": {"n": ("Int", 3), "k": ("Int", 7)},
    "n=3": {"n": ("Int", 3)},
    "scale=scale": {"scale": ("Float", 0.5)},
    "scale=0.25": {"scale": ("Float", 0.25)},
    "flag=flag": {"flag": ("Bool", True)},
    "flag=True": {"flag": ("Bool", True)},
    "mode=mode": {"mode": ("Str", "fast")},
    "mode='slow'": {"mode": ("Str", "slow")},
    "axes=dims": {"axes": ("ListInt", [2, 0])},
    "axes=[1, -1]": {"axes": ("ListInt", [1, -1])},
}


@pytest.mark.parametrize("parameters", ATTRIBUTES)
def test_scalars_of_the_call_and_of_the_line_are_attributes_of_their_types(parameters: str) -> None:
    assert node(f"Sum(a=x, {parameters}) -> c", *CALL)["attrs"] == ATTRIBUTES[parameters]


def test_symbolic_sizes_are_guarded_numbers_in_attributes() -> None:
    shapes = ShapeEnv()
    rows, columns = FakeTensorMode(shape_env=shapes).from_tensor(torch.empty(5, 4)).shape
    expected = [f"Eq({rows}, 5)", f"Eq({columns}, 4)"]
    symbol, symbols = SimpleNamespace(meta=rows), SimpleNamespace(meta=[columns, 2])
    call = ("x", None, symbol, *CALL[3:6], symbols)
    assert node("Sum(a=x, n=n, axes=dims) -> c", *call)["attrs"] == {
        "n": ("Int", 5),
        "axes": ("ListInt", [4, 2]),
    }
    assert [str(guard.expr) for guard in shapes.guards] == expected
