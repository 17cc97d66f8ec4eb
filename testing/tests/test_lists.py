"""Lists of tensors in a contract: checks, fakes, Python kernels, drawn calls and violations."""

# ruff: noqa: E501
import re
from random import Random
from typing import Any

import pytest
import torch
from custom_pypto.core.api import compile_definition
from custom_pypto.core.contracts import evaluate_cost
from custom_pypto.core.contracts.kernels import checked_kernel, fake_kernel
from custom_pypto.core.errors import PluginError
from custom_pypto_contract.contract_data import read_contract
from custom_pypto_testing.sample_generator import draw
from custom_pypto_testing.violations import violations
from manifests import contract_of, lazy_contract
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

GROUPED = """
[grouped]
schema = "grouped(Tensor[] x, Tensor[] weight, Tensor[]? bias=None, *, float scale=1.0) -> (Tensor[] y, Tensor sizes)"
tensors.x = { length = "E", shape = "M[i] K", dtype = "float32 float64" }
tensors.weight = { length = "E", shape = "K N[i]", dtype = "=x" }
tensors.bias = { length = "E", shape = "N[i]", dtype = "=x", strides = "contiguous" }
scalars.scale = "> 0 and < inf"
rules = [
  { argument = "x", check = "E <= 3", message = "must have at most 3 tensors, got {E}" },
  { argument = "weight", check = "N[i] <= M[i] + 40", message = "must be as narrow as {M[i]} + 40, got {N[i]}" },
]
outputs.y = { length = "E", shape = "M[i] 2*N[i]", dtype = "=x" }
outputs.sizes = { shape = "E K", dtype = "int64" }
bytes = "x.nbytes + weight.nbytes"
"""


def call(*shapes: tuple[int, int, int], **others: Any) -> dict[str, Any]:
    x = [torch.zeros(m, k) for m, k, _ in shapes]
    return {"x": x, "weight": [torch.zeros(k, n) for _, k, n in shapes], **others}


def refusal(given: dict[str, Any], toml: str = GROUPED) -> str:
    with pytest.raises(RuntimeError) as caught:
        fake_kernel(lazy_contract(contract_of(toml)))(**given)
    return str(caught.value)


def test_a_symbolic_size_that_is_0_divides_as_the_page_says() -> None:
    contract = contract_of(
        '[op]\nschema = "op(Tensor x, Tensor y) -> Tensor"\ntensors.x = { shape = "M" }\n'
        'tensors.y = { shape = "N" }\noutputs.z = { shape = "M//N M%N", dtype = "=x" }'
    )
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x, y = (mode.from_tensor(torch.zeros(size)) for size in (5, 3))
    for start, sizes in ((1, [2, 1]), (3, [0, 5])):
        with mode:
            rest = y[start:]
            assert isinstance(rest.shape[0], torch.SymInt)
            assert [*fake_kernel(lazy_contract(contract))(x, rest).shape] == sizes


def test_a_list_may_be_empty_only_where_another_argument_says_the_device() -> None:
    toml = """
[op]
schema = "op(Tensor[] xs, Tensor like) -> Tensor[] ys"
tensors.xs = { length = "E", shape = "M K", dtype = "float32" }
tensors.like = { shape = "K", dtype = "=xs" }
rules = [{ argument = "xs", check = "xs.dtype == float32 and K >= 1", message = "is odd" }]
outputs.ys = { length = "E", shape = "M K", dtype = "=xs" }
"""
    assert fake_kernel(lazy_contract(contract_of(toml)))([], torch.zeros(0, dtype=torch.int8)) == []
    assert refusal({"xs": [torch.zeros(1, 0)], "like": torch.zeros(0)}, toml) == (
        "op: argument 'xs' is odd"
    )
    assert refusal(call()) == "grouped: argument 'x' must have at least 1 tensor, got 0"


def test_a_list_like_an_argument_has_its_layouts() -> None:
    toml = """
[op]
schema = "op(Tensor[] xs) -> Tensor[]"
tensors.xs = {}
outputs.ys = { like = "xs" }
"""
    [made] = fake_kernel(lazy_contract(contract_of(toml)))([torch.zeros(2, 3).t()])
    assert [list(made.shape), made.stride()] == [[3, 2], (1, 3)]


def test_costs_count_every_tensor() -> None:
    contract = contract_of(GROUPED)
    given = call((2, 3, 4), (5, 3, 1), bias=None, scale=1.0)
    assert evaluate_cost(contract, contract.bytes, given) == 4 * (21 + 15)


def test_a_call_breaks_each_check_of_a_list_in_one_tensor() -> None:
    found = [*violations(contract_of(GROUPED), Random(0))]
    rules = {(each.rule, re.sub(r"\[\d\]", "[n]", each.argument)) for each in found}
    assert rules >= {
        ("rule 1", "x"), ("rule 2", "weight"), ("ndim", "x[n]"), ("dtype", "weight[n]"),
        ("device", "bias[n]"), ("strides", "bias[n]"), ("length", "weight"), ("size 0", "weight[n]"),
    }  # fmt: skip


def test_drawn_lists_have_several_lengths() -> None:
    assert {len(draw(contract_of(GROUPED), Random(seed))["x"]) for seed in range(20)} == {1, 2, 3}


def test_an_optional_tensor_alone_beside_a_list_is_broken_as_others_are() -> None:
    contract = contract_of(
        '[op]\nschema = "op(Tensor[] xs, Tensor? mask=None) -> ()"\n'
        'tensors.mask = { shape = "N", dtype = "bool" }\n'
    )
    fake_kernel(lazy_contract(contract))(xs=[], mask=torch.zeros(3, dtype=torch.bool))
    assert {each.rule for each in violations(contract, Random(0))} == {"ndim", "dtype"}


def test_a_manifest_without_lengths_is_read() -> None:
    data = contract_of('[op]\nschema = "op(Tensor x) -> Tensor"\noutputs.y = { like = "x" }').data
    older = {
        **data,
        "tensors": [{"name": "x", **{k: v for k, v in t.items() if k != "length"}} for t in data["tensors"]],
        "outputs": [{k: v for k, v in each.items() if k != "length"} for each in data["outputs"]],
    }  # fmt: skip
    assert read_contract(older).outputs == read_contract(data).outputs


RESULTS = {
    "dtype": ("x.double()", "float64 for the output 'y', but ops.toml says float32"),
    "shape": ("x[:1]", "[1, 3] for the output 'y', but ops.toml says [2, 3]"),
}


@pytest.mark.parametrize("what", RESULTS)
def test_a_python_kernel_that_returns_what_ops_toml_does_not_say_is_named(what: str) -> None:
    value, fault = RESULTS[what]
    contract = contract_of(
        '[op]\nschema = "op(Tensor x) -> Tensor"\ntensors.x = { shape = "M N", dtype = "float32" }\n'
        'outputs.y = { shape = "M N", dtype = "float32" }\n'
    )
    kernel = checked_kernel(lazy_contract(contract), lambda x: eval(value, {"x": x}))
    with pytest.raises(RuntimeError) as caught:
        kernel(torch.zeros(2, 3))
    assert str(caught.value) == f"op: its kernel returns {fault}"


def test_results_of_symbolic_sizes_are_compared_without_a_guard() -> None:
    contract = contract_of(
        '[op]\nschema = "op(Tensor x, Tensor y) -> (Tensor, Tensor)"\ntensors.x = { shape = "M" }\n'
        'tensors.y = { shape = "N" }\noutputs.a = { shape = "M", dtype = "=x" }\n'
        'outputs.b = { shape = "N", dtype = "int64" }\n'
    )
    kernel = checked_kernel(lazy_contract(contract), lambda x, y: (y + 0, x.nonzero().view(-1)))
    shapes = ShapeEnv()
    mode = FakeTensorMode(shape_env=shapes)
    given = [*map(mode.from_tensor, (torch.zeros(4), torch.zeros(5)))]
    with mode:
        kernel(*given)
    assert not shapes.guards


def compile_text(definition: str) -> object:
    """Compile the definition of an op with the argument `x`."""
    return compile_definition(
        contract_of(f'[op]\nschema = "op(Tensor x) -> Tensor"\ndefinition = "{definition}"')
    )


def test_what_torch_lacks_in_a_definition_is_named() -> None:
    hint = (
        "op: its definition in ops.toml names torch.nn.functional.relus, which torch"
        f" {torch.__version__} does not have; did you mean 'relu"
    )
    with pytest.raises(PluginError, match=re.escape(hint)):
        compile_text("[torch.nn.functional.relus(each) for each in (x,)]")
    # What plugins register may come later, and only modules are looked into.
    assert compile_text("torch.ops.custom_pypto.no_such_op(torch.float32, x.sofmax)")
