"""The checks of a contract: which they are, in which order, and with which messages."""

# ruff: noqa: E501
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest
from custom_pypto_contract import checks, ops_file
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


def read(text: str) -> OpContract:
    [op] = ops_file.read_document(ops_file.tomllib.loads(text)).ops
    return op


LAST = " in its last dimension"
# The schema's arguments, the rest of [op] or of the file, and what stands in its checks, in a row
# each; "begin" is before the first check and "end" behind the last.
CONTRACTS = {
    "the first tensor binds and the others are compared": (
        "Tensor x, Tensor y",
        """
tensors.x = { shape = "B D" }
tensors.y = { shape = "D B*2" }
descriptions.D = "the head size"
""",
        """begin
check x: x.ndim == 2 -- must be 2-D ([B, D]), got {x.ndim}-D {x.shape}
B = x.shape[0]
D = x.shape[1]
check y: y.device == x.device -- must be on the device of 'x' ({x.device}), got {y.device}
check y: y.ndim == 2 -- must be 2-D ([D, B*2]), got {y.ndim}-D {y.shape}
relate y: y.shape[0] == D -- must have size {D} in dimension 0 (the head size), got {y.shape[0]} in {y.shape}
relate y: y.shape[1] == B * 2 -- must have size {B * 2} in dimension 1 (B*2), got {y.shape[1]} in {y.shape}
end""",
    ),
    "the order says which tensor binds": (
        "Tensor x, Tensor y",
        'check_order = "y"\ntensors = { x = { shape = "D" }, y = { shape = "D" } }',
        "D = y.shape[0]",
        "relate x: x.shape[0] == D -- must have size {D} in dimension 0 (D), got {x.shape[0]} in {x.shape}",
    ),
    "every dtype besides that of a tensor is said": (
        "Tensor x, Tensor y",
        'tensors = { x = {}, y = { dtype = "=x float32 float64" } }',
        "check y: y.dtype == x.dtype or y.dtype in (float32, float64) -- must have the dtype of 'x' ({x.dtype}) or be float32 or float64, got {y.dtype}\nend",
    ),
    "rules of scalars come first and those of dims last": (
        "Tensor x, int k",
        """
tensors.x = { shape = "D" }
rules = [{ argument = "x", check = "D > k", message = "late" }, { argument = "k", check = "k % 2 == 0", message = "early" }]
scalars.k = ">= 1"
""",
        "begin\ncheck k: k >= 1 -- must be at least 1, got {k}\ncheck k: k % 2 == 0 -- early",
        "check x: D > k -- late\nend",
    ),
    "an optional tensor is checked where it is given and may bind": (
        "Tensor x, Tensor? y, Tensor z",
        'tensors = { x = {}, y = { shape = "D" }, z = { shape = "D" } }',
        "begin\nif y is not None",
        "  D = y.shape[0]",
        "D = z.shape[0] unless bound",
    ),
    "a dim that one variant binds is bound in the others later": (
        "Tensor x, Tensor y, str layout",
        """
scalars.layout = "in ('A', 'B')"
tensors.x.shape.layout = { A = "N D", B = "D" }
tensors.y.shape = "N D"
""",
        """if layout == 'A'
  check x: x.ndim == 2 -- must be 2-D ([N, D] for layout 'A'), got {x.ndim}-D {x.shape}
if layout == 'B'
  check x: x.ndim == 1 -- must be 1-D ([D] for layout 'B'), got {x.ndim}-D {x.shape}
if layout == 'A'
  N = x.shape[0]
  D = x.shape[1]
if layout == 'B'""",
        "N = y.shape[0] unless bound\nrelate y: y.shape[0] == N -- must have size {N} in dimension 0 (N), got {y.shape[0]} in {y.shape}\nrelate y: y.shape[1] == D",
    ),
    "a template fills in its parameters and its tensor": (
        "Tensor x, Tensor w",
        """
tensors.x.shape = "A B"
tensors.w.template = "weight(A, A+B)"
[templates.weight]
parameters = "K N"
shape = ["K N", "N/16 K 16"]
rules = [{ argument = "self", check = "self.ndim == 2 or self.dtype != float32", message = "is {self.dtype}" }]
""",
        "  relate w: w.shape[0] * 16 == A + B -- must have size {(A + B) // 16} in dimension 0 ({A + B} / 16: A+B), got {w.shape[0]} in {w.shape}",
        "check w: w.ndim == 2 or w.dtype != float32 -- is {w.dtype}\nend",
    ),
    **{
        f"the tensor that binds, of a group and {order or 'no order'}": (
            "Tensor x, Tensor y, Tensor z",
            f"""
include = "g"
tensors.z.shape = "D"
{order}
[groups.g]
check_order = "y x"
tensors = {{ x = {{ shape = "D" }}, y = {{ shape = "D" }} }}
""",
            bound,
        )
        for order, bound in (("", "D = y.shape[0]"), ('check_order = "z"', "D = z.shape[0]"))
    },
    "a rule of an optional argument holds where it is none": (
        "Tensor x, Tensor? y, int? k",
        """
tensors = { x = {}, y = {} }
rules = [{ argument = "k", check = "k > 1" }, { argument = "y", check = "y.ndim == x.ndim", message = "a" }, { argument = "k", when = "y is None", check = "k is not None", message = "b" }]
""",
        "begin\nif k is not None\n  check k: k > 1 -- must be more than 1, got {k}",
        "if y is not None\n  check y: y.ndim == x.ndim -- a\nif y is None\n  check k: k is not None -- b\nend",
    ),
    **{
        f"strides {strides} of {shape}": (
            "Tensor x",
            f'tensors.x = {{ shape = "{shape}", strides = "{strides}", hint = "copy it" }}',
            f"check x: {that} -- must be contiguous{where}, got shape {{x.shape}} with strides {{x.strides}}; copy it\nend",
        )
        for strides, shape, that, where in (
            ("last_dim_contiguous", "D", "x.shape[-1] == 1 or x.strides[-1] == 1", LAST),
            ("last_dim_contiguous", "*n D", "x.shape[-1] == 1 or x.strides[-1] == 1", LAST),
            ("last_dim_contiguous", "*n", "x.ndim == 0 or x.shape[-1] == 1 or x.strides[-1] == 1", LAST),
            ("contiguous", "D", "x.is_contiguous", ""),
        )
    },
    "a variadic dim that may be bound is compared": (
        "Tensor? a, Tensor? b",
        'tensors = { a = { shape = "*n D" }, b = { shape = "*n" } }',
        "  n = b.shape unless bound\n  relate b: b.shape == n -- must have the sizes {n} (n), got {b.shape}\nend",
    ),
    "a rule of a dim that a call may not have holds there": (
        "Tensor x, Tensor? mask, bool flag",
        """
tensors.x.shape.flag = { true = "N D", false = "D" }
tensors.mask = { shape = "S" }
rules = [{ argument = "x", check = "N > 1", message = "a" }, { argument = "mask", check = "S > D", message = "b" }]
""",
        "if N is not None\n  check x: N > 1 -- a\nif S is not None\n  check mask: S > D -- b\nend",
    ),
    "a number of dims may allow a tensor": (
        "Tensor x, Tensor? y=None",
        'tensors = { x = { shape = ["N", "M N"] }, y = { allowed_when."x.ndim" = [2] } }',
        "check y: y is None or x.ndim == 2 -- must be None unless x.ndim is 2; x.ndim is '{x.ndim}'",
    ),
    "the dtype may be that of a later tensor": (
        "Tensor a, Tensor b",
        "tensors = { a = { dtype = '=b' }, b = { dtype = 'float32' } }",
        "check a: a.dtype == b.dtype -- must have the dtype of 'b' ({b.dtype}), got {a.dtype}",
    ),
    "sizes of a longer tensor are said without its last dimensions": (
        "Tensor scores, Tensor lengths",
        'tensors = { scores = { shape = "*rows N" }, lengths = { shape = "*rows" } }',
        "relate lengths: lengths.shape == rows -- must have the sizes {rows} (the shape of 'scores' without its last dimension), got {lengths.shape}\nend",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRACTS)
def test_checks_of_a_contract(case: str) -> None:
    arguments, rest, *expected = CONTRACTS[case]
    text = f'[op]\nschema = "op({arguments}) -> ()"\n{rest}'
    lines = "\n".join(["", "begin", *all_checks(read(text)), "end"])
    for each in expected:
        assert f"\n{each}" in lines
