"""The checks of a contract: which they are, in which order, and with which messages."""

# ruff: noqa: E501
from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator

import pytest
from custom_pypto_contract import abi, checks, manifest, manifest_file, ops_file
from custom_pypto_contract.checks import Bind, Check, Step
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.expression import Message


def written(steps: Iterable[Step], pad: str = "") -> Iterator[str]:
    """Return steps as lines of text."""
    for step in steps:
        if isinstance(step, Check):
            kind = "relate" if step.is_of_sizes else "check"
            yield f"{pad}{kind} {step.argument}: {ast.unparse(step.condition)} -- {message_text(step.message)}"
        elif isinstance(step, Bind):
            once = " unless bound" if step.may_be_bound else ""
            yield f"{pad}{step.dim} = {ast.unparse(step.value)}{once}"
        else:
            for condition, inner in step.cases:
                yield f"{pad}if {ast.unparse(condition)}"
                yield from written(inner, f"{pad}  ")


def message_text(message: Message) -> str:
    return "".join(
        each if isinstance(each, str) else f"{{{ast.unparse(each)}}}" for each in message
    )


def all_checks(op: OpContract) -> list[str]:
    """Return everything that is checked of an op, limits included."""
    lines = list(written(checks.steps(op)))
    for name, rules in op.npu.limits.items():
        lines += [f"limits of {name}", *written(checks.rule_steps(op, rules), "  ")]
    lines += [f"supports {name}: {ast.unparse(each)}" for name, each in op.npu.supports.items()]
    return lines


def lines_of(text: str) -> list[str]:
    [op] = ops_file.read_document(ops_file.tomllib.loads(text)).ops
    return all_checks(op)


def test_newer_contract_version_is_refused_with_advice() -> None:
    text = manifest.Manifest(
        name="add_custom",
        distribution="d",
        version="1",
        core_abi=abi.CORE_ABI,
        torch_target="2.10",
        platform="any",
        ops=(manifest.make_op({"schema": "add_custom() -> ()"}),),
        requires_ops=(),
        library=None,
    ).to_json()
    assert manifest_file.parse(text).ops[0].name == "add_custom"
    document = {**json.loads(text), "contract_version": abi.CONTRACT_VERSION + 1}
    with pytest.raises(manifest.ManifestError) as caught:
        manifest_file.parse(json.dumps(document))
    assert str(caught.value) == (
        f"'contract_version' is {abi.CONTRACT_VERSION + 1}, this core reads 1 to"
        f" {abi.CONTRACT_VERSION}; upgrade custom-pypto-core"
    )


def test_first_tensor_binds_and_the_others_are_compared() -> None:
    assert lines_of("""
[op]
schema = "op(Tensor x, Tensor y) -> ()"
tensors.x = { shape = "B D" }
tensors.y = { shape = "D B*2" }
descriptions.D = "the head size"
""") == [
        "check x: x.ndim == 2 -- must be 2-D ([B, D]), got {x.ndim}-D {x.shape}",
        "B = x.shape[0]",
        "D = x.shape[1]",
        "check y: y.device == x.device -- must be on the device of 'x' ({x.device}), got {y.device}",
        "check y: y.ndim == 2 -- must be 2-D ([D, B*2]), got {y.ndim}-D {y.shape}",
        "relate y: y.shape[0] == D -- must have size {D} in dimension 0 (the head size), got {y.shape[0]} in {y.shape}",
        "relate y: y.shape[1] == B * 2 -- must have size {B * 2} in dimension 1 (B*2), got {y.shape[1]} in {y.shape}",
    ]


def test_order_says_which_tensor_binds() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor x, Tensor y) -> ()"
check_order = "y"
tensors.x = { shape = "D" }
tensors.y = { shape = "D" }
""")
    assert "D = y.shape[0]" in lines
    assert any(line.startswith("relate x: x.shape[0] == D") for line in lines)


def test_every_dtype_besides_that_of_a_tensor_is_said() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor x, Tensor y) -> ()"
tensors.x = {}
tensors.y = { dtype = "=x float32 float64" }
""")
    assert lines[-1] == (
        "check y: y.dtype == x.dtype or y.dtype in (float32, float64)"
        " -- must have the dtype of 'x' ({x.dtype}) or be float32 or float64, got {y.dtype}"
    )


def test_rules_of_scalars_come_first_and_those_of_dims_last() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor x, int k) -> ()"
tensors.x = { shape = "D" }
rules = [{ argument = "x", check = "D > k", message = "late" }, { argument = "k", check = "k % 2 == 0", message = "early" }]
scalars.k = ">= 1"
""")
    assert [lines[0], lines[1], lines[-1]] == [
        "check k: k >= 1 -- must be at least 1, got {k}",
        "check k: k % 2 == 0 -- early",
        "check x: D > k -- late",
    ]


def test_optional_tensor_is_checked_where_it_is_given_and_may_bind() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor x, Tensor? y, Tensor z) -> ()"
tensors = { x = {}, y = { shape = "D" }, z = { shape = "D" } }
""")
    assert lines[0] == "if y is not None"
    assert "  D = y.shape[0]" in lines
    assert "D = z.shape[0] unless bound" in lines


def test_dim_that_one_variant_binds_is_bound_in_the_others_later() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor x, Tensor y, str layout) -> ()"
scalars.layout = "in ('A', 'B')"
tensors.x.shape.layout = { A = "N D", B = "D" }
tensors.y.shape = "N D"
""")
    assert lines[1:9] == [
        "if layout == 'A'",
        "  check x: x.ndim == 2 -- must be 2-D ([N, D] for layout 'A'), got {x.ndim}-D {x.shape}",
        "if layout == 'B'",
        "  check x: x.ndim == 1 -- must be 1-D ([D] for layout 'B'), got {x.ndim}-D {x.shape}",
        "if layout == 'A'",
        "  N = x.shape[0]",
        "  D = x.shape[1]",
        "if layout == 'B'",
    ]
    assert "N = y.shape[0] unless bound" in lines
    assert not any(line.startswith("D = y") for line in lines)


def test_kind_fills_in_its_parameters_and_its_tensor() -> None:
    lines = lines_of("""
[templates.weight]
parameters = "K N"
shape = ["K N", "N/16 K 16"]
rules = [{ argument = "self", check = "self.ndim == 2 or self.dtype != float32", message = "is {self.dtype}" }]

[op]
schema = "op(Tensor x, Tensor w) -> ()"
tensors.x.shape = "A B"
tensors.w.template = "weight(A, A+B)"
""")
    assert (
        "  relate w: w.shape[0] * 16 == A + B -- must have size {(A + B) // 16} in dimension 0 ({A + B} / 16: A+B), got {w.shape[0]} in {w.shape}"
        in lines
    )
    assert lines[-1] == "check w: w.ndim == 2 or w.dtype != float32 -- is {w.dtype}"


def test_groups_are_checked_before_the_op_unless_it_orders() -> None:
    text = """
[groups.g]
check_order = "y x"
tensors = { x = { shape = "D" }, y = { shape = "D" } }

[op]
schema = "op(Tensor x, Tensor y, Tensor z) -> ()"
include = "g"
tensors.z.shape = "D"
"""
    assert "D = y.shape[0]" in lines_of(text)
    assert "D = z.shape[0]" in lines_of(text + 'check_order = "z"')


def test_rule_of_an_optional_argument_holds_where_it_is_none() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor x, Tensor? y, int? k) -> ()"
tensors = { x = {}, y = {} }
rules = [{ argument = "k", check = "k > 1" }, { argument = "y", check = "y.ndim == x.ndim", message = "a" }, { argument = "k", when = "y is None", check = "k is not None", message = "b" }]
""")
    assert lines[:2] == ["if k is not None", "  check k: k > 1 -- must be more than 1, got {k}"]
    assert lines[-4:] == [
        "if y is not None",
        "  check y: y.ndim == x.ndim -- a",
        "if y is None",
        "  check k: k is not None -- b",
    ]


@pytest.mark.parametrize(
    ("strides", "shape", "that"),
    [
        ("last_dim_contiguous", "D", "x.shape[-1] == 1 or x.strides[-1] == 1"),
        ("last_dim_contiguous", "*n D", "x.shape[-1] == 1 or x.strides[-1] == 1"),
        ("last_dim_contiguous", "*n", "x.ndim == 0 or x.shape[-1] == 1 or x.strides[-1] == 1"),
        ("contiguous", "D", "x.is_contiguous"),
    ],
)
def test_strides_are_checked_last_with_the_hint(strides: str, shape: str, that: str) -> None:
    lines = lines_of(f"""
[op]
schema = "op(Tensor x) -> ()"
tensors.x = {{ shape = "{shape}", strides = "{strides}", hint = "copy it" }}
""")
    assert lines[-1].startswith(f"check x: {that} -- must be contiguous")
    assert lines[-1].endswith("got shape {x.shape} with strides {x.strides}; copy it")


def test_variadic_dim_that_may_be_bound_is_compared() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor? a, Tensor? b) -> ()"
tensors = { a = { shape = "*n D" }, b = { shape = "*n" } }
""")
    assert lines[-2:] == [
        "  n = b.shape unless bound",
        "  relate b: b.shape == n -- must have the sizes {n} (n), got {b.shape}",
    ]


def test_rule_of_a_dim_that_a_call_may_not_have_holds_there() -> None:
    lines = lines_of("""
[op]
schema = "op(Tensor x, Tensor? mask, bool flag) -> ()"
tensors.x.shape.flag = { true = "N D", false = "D" }
tensors.mask = { shape = "S" }
rules = [{ argument = "x", check = "N > 1", message = "a" }, { argument = "mask", check = "S > D", message = "b" }]
""")
    assert lines[-4:] == [
        "if N is not None",
        "  check x: N > 1 -- a",
        "if S is not None",
        "  check mask: S > D -- b",
    ]
