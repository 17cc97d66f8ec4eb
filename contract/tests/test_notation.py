"""Constants, scalars, choices of groups and templates, and references to later names."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest
from custom_pypto_contract import notation, ops_file
from custom_pypto_contract.__main__ import main
from custom_pypto_contract.attributes import ATTRIBUTES, COST_ATTRIBUTES
from custom_pypto_contract.dtypes import DTYPES
from custom_pypto_contract.errors import ContractError
from custom_pypto_contract.ops_file import OpsFile
from test_checks import all_checks

PAGE = (Path(__file__).parents[2] / "docs" / "contract.md").read_text(encoding="utf-8")


def read(text: str) -> OpsFile:
    return ops_file.read_document(ops_file.tomllib.loads(text))


CONSTANTS = """
[constants]
LIMIT = 9223372036854775807
EPSILON = 1e-5
HEADS = [1, 2, 4]
MODE = "fast"

[op]
schema = "op(Tensor x, int k=LIMIT, str mode='fast', float e=EPSILON) -> Tensor"
summary = "LIMIT stands for itself here"
definition = "x + LIMIT"
tensors.x = { shape = "N LIMIT", hint = "LIMIT" }
scalars.k = "<= LIMIT"
rules = [
  { argument = "x", check = "N in HEADS", message = "must have {HEADS} heads, at most {LIMIT}, got {N}" },
  { argument = "x", when = "mode == MODE", check = "e == EPSILON", message = "needs {EPSILON}" },
]
npu.launch = "aclnnOp(x, LIMIT)"
npu.supports.kernel = "k < LIMIT"
"""


def test_constants_are_replaced_where_they_are_values_and_nowhere_else() -> None:
    file = read(CONSTANTS)
    [op] = file.ops
    assert file.constants["HEADS"] == [1, 2, 4]
    assert op.schema.text == (
        "op(Tensor x, int k=9223372036854775807, str mode='fast', float e=1e-05) -> Tensor"
    )
    assert (op.summary, op.tensors[0].hint) == ("LIMIT stands for itself here", "LIMIT")
    assert op.definition == "x + 9223372036854775807"
    assert op.npu.launch[0].text == "aclnnOp(x, 9223372036854775807)"
    lines = all_checks(op)
    assert lines[0] == (
        "check k: k <= 9223372036854775807 -- must be at most 9223372036854775807, got {k}"
    )
    assert (
        "check x: N in (1, 2, 4) -- must have 1, 2 or 4 heads, at most 9223372036854775807, got {N}"
        in lines
    )
    assert lines[1:3] == ["if mode == 'fast'", "  check x: e == 1e-05 -- needs 1e-05"]
    assert lines[-1] == "supports kernel: k < 9223372036854775807"


@pytest.mark.parametrize(
    ("constants", "reason"),
    [
        ("limit = 3", "[constants]: 'limit': write the name in upper case"),
        ("LIMIT = []", "[constants]: LIMIT: a list has values of one type, got []"),
        ("LIMIT = [1, 'a']", "[constants]: LIMIT: a list has values of one type"),
        ("LIMIT = { a = 1 }", "[constants.LIMIT] must be true, false, a number or a text"),
        (
            "LIMIT = 9223372036854775808",
            "[constants]: LIMIT: 9223372036854775808 does not fit into 64",
        ),
        ("LIMIT = [1.0, 1e400]", "[constants]: LIMIT: inf does not fit into 64 bits"),
        ("LIMIT = nan", "[constants]: LIMIT: nan does not fit into 64 bits"),
        ("M = '{k}'", "[op]: message: M has braces"),
        ("K = 3\nM = 3", "[op]: schema: 'K' is a constant, and no argument's name"),
    ],
)
def test_constant_that_cannot_be_one_is_refused(constants: str, reason: str) -> None:
    with pytest.raises(ContractError) as caught:
        read(
            f"[constants]\n{constants}\n[op]\nschema = 'op(int K, int k) -> ()'\n"
            "rules = [{ argument = 'k', check = 'k > 1', message = 'is {M}' }]"
        )
    assert reason in str(caught.value)


def test_constant_is_no_text_in_quotes_no_attribute_and_no_name_of_something_else() -> None:
    [op] = read("""
[constants]
A = 3
SIZES = [1, 2]

[templates.rows]
parameters = "A"
shape = "B A"

[op]
schema = "op(Tensor x, str mode='m=A', int[] sizes=SIZES) -> Tensor"
definition = "x.A(mode == 'A', A)"
scalars.mode = "in ('A', 'hint')"
tensors.x = { shape.mode = { A = "N A", hint = "N A (A+1)" } }
rules = [{ argument = "x", check = "N != A and mode != 'A'", message = "is A, not {N*A} nor { A }" }]
outputs.y = { like = "x" }
npu.launch = "aclnnOp(x, A, y)"
npu.graph = "A(A=x, B=A) -> y"

[other]
schema = "other(Tensor x) -> ()"
tensors.x = { template = "rows(5)" }
""").ops[:1]
    assert op.schema.text == "op(Tensor x, str mode='m=A', int[] sizes=[1, 2]) -> Tensor"
    assert op.definition == "x.A(mode == 'A', 3)"
    assert [[dim.text for dim in shape] for shape in op.tensors[0].shapes] == [
        ["N", "3"],
        ["N", "3", "(3+1)"],
    ]
    assert "check x: N != 3 and mode != 'A' -- is A, not {N * 3} nor 3" in all_checks(op)[-1]
    assert (op.npu.launch[0].text, op.npu.graph[0].text) == (
        "aclnnOp(x, 3, y)",
        "A(A=x, B=3) -> y",
    )


OP = "[op]\nschema = 'op(Tensor x, int k{}) -> ()'\n"
PLAIN = OP.format("")


@pytest.mark.parametrize(
    "text",
    [
        PLAIN + "rules = " + "[" * 5000 + "]" * 5000,
        PLAIN + "tensors.x.shape." + ".".join(["k.1"] * 1500) + " = 'N'",
        PLAIN + "tensors.x.shape." + ".".join(["k.1"] * 20) + " = 'N'",
        # tomllib alone needs half a minute for this one.
        ".".join("a" * 50_000) + " = 1",
        PLAIN + f"rules = [{{ argument = 'k', check = '{'-' * 5000}k > 0' }}]",
        PLAIN + f"rules = [{{ argument = 'k', check = '{'not ' * 150}k > 0' }}]",
        PLAIN + f"definition = '{'-' * 5000}k'",
        PLAIN + f"npu.launch = 'aclnnOp({'-' * 5000}1)'",
    ],
)
def test_text_that_is_nested_too_deeply_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "ops.toml"
    file.write_text(text)
    with pytest.raises(ContractError, match=r"^ops.toml: .*nested too deeply"):
        ops_file.read(file)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (OP.format(f"={'-' * 5000}1"), "the default of `k` is"),
        (PLAIN + f"tensors.x.shape = 'N/{'9' * 30}'", "is no|has no"),
        (PLAIN + f"tensors.x.shape = 'N/{'9' * 5000}'", "is no|has no"),
        (PLAIN + f"tensors.x = {{ shape = '*N', ndim = [{'9' * 30}] }}", "x.ndim must be"),
        (PLAIN + f"tensors.x.shape.k.{'9' * 30} = 'N'", "k cannot be"),
        (PLAIN + "tensors.x.shape.'x.x.ndim'.2 = 'M N'", r"'x\.x\.ndim' is nothing to choose by"),
        (PLAIN + "tensors.x.shape.k = {}", "tensors.x.shape: k has no value to choose by"),
    ],
)
def test_number_or_choice_that_cannot_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ContractError, match=reason):
        read(text)


def test_scalars_of_a_group_are_those_of_every_op_that_includes_it() -> None:
    [one, other] = read("""
[groups.g]
check_order = ""
scalars = { k = ">= 1", mode = "in ('a', 'b')" }

[one]
schema = "one(int k, str mode) -> ()"
include = "g"

[other]
schema = "other(str mode, int k, int n) -> ()"
include = "g"
scalars = { k = ">= 2", n = "== 0" }
""").ops
    assert [line.partition(" --")[0] for line in all_checks(one)] == [
        "check k: k >= 1",
        "check mode: mode in ('a', 'b')",
    ]
    assert [line.partition(" --")[0] for line in all_checks(other)] == [
        "check mode: mode in ('a', 'b')",
        "check k: k >= 2",
        "check n: n == 0",
    ]
    assert one.groups == {"g": ("k", "mode")}


def test_shape_and_values_of_a_template_may_be_chosen() -> None:
    [op] = read(
        """
[templates.rows]
parameters = "N D"
shape.layout = { A = "B N D", B = "T D" }
values.layout = { A = "0 .. N - 1", B = "0 .. D*2" }
dtype = "int32"

[op]
schema = "op(Tensor x, str layout) -> ()"
scalars.layout = "in ('A', 'B')"
tensors.x = { template = "rows(16, P+R)", descriptions = { R = "rotated" } }
tensors.y = { shape = "P R" }
check_order = "y"
""".replace("Tensor x,", "Tensor x, Tensor y,")
    ).ops
    assert [[dim.text for dim in shape] for shape in op.tensors[1].shapes] == [
        ["B", "16", "P+R"],
        ["T", "P+R"],
    ]
    assert list(op.tensors[1].values.trees.values()) == ["0 .. 16 - 1", "0 .. (P+R)*2"]
    assert op.templates == {"rows": ("x",)}


def test_dtypes_of_tensors_are_no_circle() -> None:
    text = PLAIN.replace("int k", "Tensor y") + "tensors = { x.dtype = '=y', y.dtype = '=x' }"
    with pytest.raises(ContractError, match=r"x.dtype: circular: x -> y -> x; list the dtypes"):
        read(text)


TABLES = {
    "an op": notation.OP,
    "a tensor": (*notation.TENSOR, notation.TEMPLATE_OF_TENSOR),
    "a rule": notation.RULE,
    "an output": notation.OUTPUT,
    "NPU kernels": notation.NPU,
    "limits of a kernel": notation.LIMITS_OF_KERNEL,
    "a template": [key for key in notation.TEMPLATE if key not in notation.TENSOR],
}


@pytest.mark.parametrize("of", TABLES)
def test_page_has_the_table_of_the_keys(of: str) -> None:
    assert "\n".join(("| key | says |", "|---|---|", *notation.rows(TABLES[of]))) in PAGE


def test_page_has_the_attributes_and_dtypes() -> None:
    for attributes in (ATTRIBUTES, COST_ATTRIBUTES):
        rows = [f"| `x.{name}` | {each.help} |" for name, each in attributes.items()]
        assert "\n".join(rows) in PAGE
    assert ", ".join(f"`{name}`" for name in DTYPES) in PAGE


def test_the_command_describes_a_file_or_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ops.toml"
    path.write_text("[op]\nschema = 'op(int k) -> ()'\nscalars.k = '1 <= k <= 3'")
    assert main([str(path)]) == (
        "error: ops.toml: [op]: scalars.k: '1 <= k <= 3' must go on after the name, as '>= 1',"
        " '> 0 and < inf' or 'in (0, 3)' do; write a rule for anything else"
    )
    path.write_text("[op]\nschema = 'op(int k) -> ()'\nscalars.k = '>= 1'")
    assert main([str(path)]) is None
    assert capsys.readouterr().out == "op(int k) -> ()\n\nArguments\n  k  int; k >= 1\n"
