"""Layouts that a contract allows, and what is drawn of a contract."""

from random import Random

import pytest
import torch
from custom_pypto.core.contracts import bind_arguments
from custom_pypto_testing.drawn_samples import as_sample, drawn_samples
from custom_pypto_testing.layouts import layouts_of
from custom_pypto_testing.sample_generator import draw
from custom_pypto_testing.violations import violations
from manifests import contract_of

SIZES = (2, 5, 3, 4)
STRIDES = {"contiguous": set[int](), "last_dim_contiguous": {0, 1, 2}, "any": {0, 1, 2, 3}}
"""The dims that may lie elsewhere than in a dense tensor."""


def op_with(strides: str, rules: str = "") -> str:
    return f"""
[op]
schema = "op(Tensor x, int k=1, *, Tensor? table=None) -> ()"
tensors.x = {{ shape = "A B C D", dtype = "float64", strides = "{strides}" }}
tensors.table = {{ shape = "D", dtype = "float32" }}
{rules}
"""


def allows(strides: str, tensor: torch.Tensor) -> bool:
    if strides == "contiguous":
        return tensor.is_contiguous()
    return strides == "any" or tensor.shape[-1] == 1 or tensor.stride(-1) == 1


@pytest.mark.parametrize("strides", STRIDES)
def test_each_layout_is_allowed_and_keeps_the_values(strides: str) -> None:
    x = torch.arange(120.0).view(SIZES)
    for layout in layouts_of(strides, SIZES):
        copy = layout.copy(x)
        assert copy.equal(x)
        assert allows(strides, copy), layout


@pytest.mark.parametrize(("strides", "wanted"), STRIDES.items())
def test_drawn_layouts_reach_every_dim_that_the_contract_leaves_open(
    strides: str, wanted: set[int]
) -> None:
    random, contract = Random(0), contract_of(op_with(strides))
    drawn = [draw(contract, random)["x"] for _ in range(200)]
    assert all(allows(strides, each) for each in drawn)
    assert {each.storage_offset() for each in drawn} == {0, 1, 5}
    dense = [torch.empty(each.shape).stride() for each in drawn]
    moved = {
        dim
        for each, plain in zip(drawn, dense, strict=True)
        for dim in range(4)
        if each.shape[dim] > 1 and each.stride(dim) != plain[dim]
    }
    assert moved == wanted


def test_a_tensor_without_elements_needs_no_memory_in_a_layout_with_gaps() -> None:
    empty = torch.empty(2**40, 0, 2**20)
    for layout in layouts_of("any", empty.shape):
        assert layout.copy(empty).untyped_storage().nbytes() < 100


@pytest.mark.parametrize("attribute", ["strides[0] >= 0", "shape[0] != 2", "is_contiguous"])
def test_rules_read_tensors_that_nothing_could_hold(attribute: str) -> None:
    rule = f'{{ argument = "x", check = "x.{attribute}", message = "must fit" }}'
    assert list(violations(contract_of(op_with("any", f"rules = [{rule}]")), Random(0)))


def test_arguments_are_drawn_by_position_and_by_name() -> None:
    contract = contract_of(op_with("any"))
    given = draw(contract, Random(0))
    sample = as_sample(contract, given)
    assert (len(sample.args), [*sample.kwargs]) == (2, ["table"])
    by_name = as_sample(contract, given, by_name=True)
    assert (by_name.args, [*by_name.kwargs]) == ((), ["x", "k", "table"])
    samples = [*drawn_samples(contract)]
    assert {len(each.args) for each in samples} == {0, 2}
    # `table` gets no gradient: it may be of another dtype.
    assert "drawn-float64" in [each.name for each in samples]


def test_samples_for_npus_keep_the_limits_of_their_kernels() -> None:
    limit = '{ argument = "k", check = "k >= 3", message = "must be 3 or more" }'
    contract = contract_of(op_with("any", f"npu.limits = [{limit}]"))
    samples = {each.name: each for each in drawn_samples(contract, "npu")}
    given = [bind_arguments(contract, each.args, each.kwargs) for each in samples.values()]
    assert min(each["k"] for each in given) >= 3
    assert samples["drawn-0"].resized is not None
    assert "drawn-float64" not in samples
