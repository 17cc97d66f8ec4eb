"""ops.toml: what it says, and errors that name file, op and key."""

# ruff: noqa: E501
from __future__ import annotations

import json
from pathlib import Path

import pytest
from custom_pypto_contract import contract_data, ops_file
from custom_pypto_contract.contract import Op
from custom_pypto_contract.errors import ContractError

# A contract that is right; each case adds to it, or replaces what it says.
BASE = """
[kinds.row]
parameters = "N"
shape = "*shape N"

[groups.both]
order = "x"
tensors.x = { kind = "row(D)" }

[op]
schema = "op(Tensor x, Tensor? y, int k=1, str mode='a', bool flag=False, int[] sizes=[]) -> Tensor"
include = "both"
"""
OUTPUT = '\noutputs.z = { shape = "*shape D", dtype = "=x" }\n'
TENSOR = "\ntensors.y = {}"


def write(folder: Path, text: str) -> Path:
    path = folder / "ops.toml"
    path.write_text(text, encoding="utf-8")
    return path


def read(folder: Path, text: str) -> tuple[Op, ...]:
    return ops_file.read(write(folder, text))


def test_base_is_right(tmp_path: Path) -> None:
    [op] = read(tmp_path, BASE + TENSOR + OUTPUT)
    assert [tensor.name for tensor in op.tensors] == ["x", "y"]
    assert op.dims == {"shape": True, "D": False}


WRONG = {
    "key of an op": ("rule = []", "unknown key 'rule'; did you mean 'rules'?"),
    "key of a tensor": ("tensors.y = { shap = 'D' }", "tensors.y: unknown key 'shap'; did you mean 'shape'?"),
    "key of an output": ("outputs.z = { like = 'x', of = 'x' }", "outputs.z: unknown key 'of'"),
    "key of a rule": ("rules = [{ of = 'x', if = 'D > 1', that = 'D > 1' }]", "rules: unknown key 'if'"),
    "key of npu": ("npu.limit = []", "npu: unknown key 'limit'; did you mean 'limits'?"),
    "rule without of": ("rules = [{ that = 'D > 1' }]", "rules: 'of' is missing"),
    "rule without words": ("rules = [{ of = 'x', that = 'D != 2' }]", "say what the error says, with 'says'"),
    "rule of nothing": ("rules = [{ of = 'z', that = 'D > 1', says = 'a' }]", "there is no argument 'z'"),
    "rule of an unknown dim": (
        "rules = [{ of = 'x', that = 'DD > 1', says = 'a' }]",
        "'DD' is no argument, no dtype and no dim of a tensor; did you mean 'D'?",
    ),
    "message with an unknown dim": ("rules = [{ of = 'x', that = 'D > 1', says = '{E}' }]", "'E' is no argument"),
    "no expression": ("rules = [{ of = 'x', that = 'D >', says = 'a' }]", "'D >' is no expression"),
    "call in an expression": ("rules = [{ of = 'x', that = 'len(x)', says = 'a' }]", "a contract has no Call"),
    "division": ("rules = [{ of = 'x', that = 'D / 2 > 1', says = 'a' }]", "a contract has no Div"),
    "attribute": ("rules = [{ of = 'x', that = 'x.size > 1', says = 'a' }]", "a tensor has no 'size'"),
    "attribute of a number": ("rules = [{ of = 'k', that = 'k.rank > 1', says = 'a' }]", "'k' is of type int, which has no 'rank'"),
    "text and number": ("rules = [{ of = 'k', that = 'k == mode', says = 'a' }]", "'k', of type int, is compared with one of type str"),
    "order of texts": ("rules = [{ of = 'mode', that = \"mode > 'a'\", says = 'a' }]", "is compared with one of type str"),
    "number for a bool": ("rules = [{ of = 'k', that = 'k + 1', says = 'a' }]", "is of type int, where bool is needed"),
    "tensor for a number": ("rules = [{ of = 'x', that = 'x > 1', says = 'a' }]", "of type tensor"),
    "tensor in a message": ("rules = [{ of = 'x', that = 'D > 1', says = '{x}' }]", "is of type tensor, which no message shows"),
    "None elsewhere": ("rules = [{ of = 'y', that = 'y == None', says = 'a' }]", "write 'is None'"),
    "list elsewhere": ("rules = [{ of = 'k', that = 'k == (1, 2)', says = 'a' }]", "'in' is followed by values"),
    "part of a shape": ("rules = [{ of = 'x', that = 'x.shape[1:] == x.shape', says = 'a' }]", "a part of a shape is written x.shape[:-2]"),
    "variants of any text": (
        "tensors.y.shape.mode = { a = 'D', b = 'D D' }",
        "scalars: 'mode' chooses a variant; say which values it can have: mode = \"in ('a', 'b',)\"",
    ),
    "scalar that is none": ("scalars.x = '>= 1'", "scalars"),
    "tensor that is none": ("tensors.yy = {}", "the schema has no tensor 'yy'; did you mean 'y'?"),
    "dtype": ("tensors.y = { dtype = 'float23' }", "uint8 bool; did you mean 'float32'?"),
    "dtype of none": ("tensors.y = { dtype = '=xx' }", "there is no tensor 'xx'; did you mean 'x'?"),
    "dtype of what may be None": ("tensors.y = { dtype = '=y' }", "dtype: 'y' may be None"),
    "two dtypes": ("tensors.y = { dtype = '=x =x' }", "names two tensors"),
    "strides": ("tensors.y = { strides = 'first' }", "strides must be one of any, last, all"),
    "variadic dim behind": ("tensors.y = { shape = 'D *shape' }", "*name can stand at the front only"),
    "dim that is unbound": ("tensors.y = { shape = 'D*E' }", "'D*E' uses 'E', which no tensor before it has"),
    "dim that is a tensor": ("tensors.y = { shape = 'x D' }", "'x' is of type tensor, and no size"),
    "dim that is a text": ("tensors.y = { shape = 'mode' }", "'mode' is of type str, and no size"),
    "dim that may be None": ("tensors.y = { shape = 'y.rank' }", "uses 'y', which may be None"),
    "chosen by two": ("tensors.y.shape = { mode = { a = 'D' }, flag = { true = 'D' } }", "it is chosen by one thing"),
    "chosen by nothing": ("tensors.y.shape.mod = { a = 'D' }", "did you mean 'mode'?"),
    "value of a bool": ("tensors.y.shape.flag = { maybe = 'D' }", "flag cannot be 'maybe'"),
    "value of a rank": ("tensors.y.shape.\"x.rank\" = { two = 'D' }", "x.rank cannot be 'two'"),
    "kind": ("tensors.y = { kind = 'rows(D)' }", "there is no [kinds.rows]; did you mean 'row'?"),
    "parameters of a kind": ("tensors.y = { kind = 'row' }", "row takes 1 parameters, got 'row'"),
    "group": ("include = 'boths'", "there is no [groups.boths]; did you mean 'both'?"),
    "order": ("order = 'x z'", "order: there is no tensor 'z'"),
    "number of outputs": ("outputs = {}", "outputs: 0 of them, but the schema has 1 returns"),
    "output without dtype": ("outputs.z = { shape = 'D' }", "write shape and dtype, or like"),
    "output of two dtypes": ("outputs.z = { shape = 'D', dtype = 'float32 int8' }", "an output has one dtype"),
    "output like none": ("outputs.z = { like = 'xx' }", "like: there is no tensor 'xx'; did you mean 'x'?"),
    "output like what may be None": ("outputs.z = { like = 'y' }", "like: 'y' may be None"),
    "output of an unknown dim": ("outputs.z = { shape = 'E', dtype = '=x' }", "'E' is no argument, no dtype"),
    "launch": ("npu.launch = 'aclnnOp x'", "'aclnnOp x' is no call"),
    "launch by name": ("npu.launch = 'aclnnOp(self=x)'", "a kernel takes values by position"),
    "launch with results": ("npu.launch = 'aclnnOp(x) -> y'", "a kernel takes values by position"),
    "graph by position": ("npu.graph = 'Op(x) -> y'", "an operator takes values by name"),
    "graph with other results": ("npu.graph = 'Op(x=x) -> y, z'", "it has 2 results, but the schema 1 returns"),
    "definition": ("definition = 'xx + 1'", "definition: 'xx' is no argument; did you mean 'x'?"),
    "graph of None": ("npu.graph = 'Op(x=x, k=None) -> y'", "'None' for 'k' is no attribute; write a number, or leave the parameter out"),
    "graph of a scalar": ("npu.graph = 'Op(x=x, k=scalar(1)) -> y'", "'1' for 'k' is no attribute; write a number"),
    "graph of a list of ints": ("npu.graph = 'Op(x=[k]) -> y'", "the list for 'x' is of tensors, or of numbers"),
    "graph of an output": (
        "npu.graph = 'Op(x=z) -> y'\noutputs.z = { like = 'x' }",
        "'z' is no argument; outputs stand behind '->'",
    ),
    "required Tensor": ("tensors.x.required.flag = { true = 'a' }", "tensors.x.required: the schema has a Tensor, which is never None"),
    "only of a Tensor": ("tensors.x.only.flag = [true]", "tensors.x.only: the schema has a Tensor, which is never None"),
    "rank of a fixed shape": ("tensors.y = { shape = 'D', rank = [1] }", "tensors.y.rank: it is of a shape that begins with *name"),
    "like and shape": ("outputs.z = { like = 'x', shape = 'D' }", "like says shape and dtype"),
    "output called as an argument": ("outputs.x = { like = 'x' }", "outputs.x: an argument is called 'x' too"),
    "output that is no name": ("outputs.'a b' = { like = 'x' }", "outputs: 'a b' is no name"),
    "fits that is no name": ("npu.fits.'a b' = 'D > 1'", "npu.fits: 'a b' is no name"),
    "ellipsis": ("tensors.y = { shape = '... D' }", "any number of dims has a name: write *name"),
    "braces in a hint": ("tensors.y = { hint = '{foo}' }", "tensors.y.hint: it is shown as it is, without braces"),
    "braces in words": ("words.D = '{foo}'", "words.D: it is shown as it is, without braces"),
    "limits without rules": ("npu.limits.k = { because = 'a' }", "npu.limits.k: 'rules' is missing"),
    "overload": ("out.schema = 'op.out(Tensor x) -> ()'", "an overload is written [\"op.out\"]"),
    "launch of what is none": ("npu.launch = 'aclnnOp(w)'", "'w' is no argument"),
    "launch of an expression": ("npu.launch = 'aclnnOp(k + 1)'", "cannot be passed"),
    "fits of what may be None": ("npu.fits.fast = 'y.rank > 1'", "npu.fits.fast: 'y.rank > 1' uses 'y' where it may be None; ask first"),
    "None that is asked for too late": (
        "rules = [{ of = 'y', that = 'y.rank > 1 or y is None', says = 'a' }]",
        "uses 'y' where it may be None; ask first: 'y is None or ..'",
    ),
    "message of what is None": (
        "rules = [{ of = 'y', that = 'y is not None', says = 'got {y.shape}' }]",
        "says: 'y.shape' uses 'y' where it may be None",
    ),
    "number of more than 64 bits": ("rules = [{ of = 'x', that = 'D < 9223372036854775808', says = 'a' }]", "does not fit into 64 bits"),
    "number that is infinite": ("scalars.k = '< 1e999'", "does not fit into 64 bits"),
    "variants of any number": ("tensors.y.shape.k = { 1 = 'D', 2 = 'D D' }", "say which values it can have: k = \"in (1, 2,)\""),
    "variants of any rank": ("tensors.y.shape.\"x.rank\" = { 1 = 'D' }", "say which it can have: tensors.x.rank = [1]"),
    "output without a variant": (
        "outputs.z = { shape.flag = { true = 'D' }, dtype = '=x' }",
        "outputs.z.shape: it says nothing for flag False",
    ),
    "fits": ("npu.fits.fast = 'D + 1'", "npu.fits.fast: 'D + 1' is of type int, where bool is needed"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_error_names_file_op_and_key(tmp_path: Path, case: str) -> None:
    line, reason = WRONG[case]
    base = BASE if not line.startswith("include") else BASE.replace('include = "both"\n', "")
    tensor = "" if line.startswith("tensors.y") else TENSOR
    with pytest.raises(ContractError) as caught:
        read(tmp_path, f"{base}{line}{tensor}")
    assert str(caught.value).startswith("ops.toml: [op]: ")
    assert reason in str(caught.value)


# Every key, with what it is right for; each other value is of a wrong type.
TYPES = {
    "schema": "text", "about": "text", "definition": "text", "include": "texts", "order": "texts",
    "tensors": "table", "scalars": "table", "scalars.k": "text", "rules": "list", "outputs": "table",
    "words": "table", "words.D": "text", "npu": "table", "npu.limits": "list table", "npu.limits.k": "table",
    "npu.limits.k.because": "text", "npu.limits.k.rules": "list", "npu.fits": "table", "npu.fits.k": "text",
    "npu.launch": "texts", "npu.graph": "texts", "tensors.y": "table", "tensors.y.kind": "text",
    "tensors.y.shape": "texts table", "tensors.y.shape.mode": "table", "tensors.y.rank": "numbers",
    "tensors.y.dtype": "text", "tensors.y.required": "table", "tensors.y.required.mode": "table",
    "tensors.y.only": "table", "tensors.y.only.mode": "numbers texts-only", "tensors.y.strides": "text",
    "tensors.y.hint": "text", "tensors.y.words": "text table", "tensors.y.values": "text table",
    "outputs.z": "table", "outputs.z.shape": "text table", "outputs.z.dtype": "text", "outputs.z.like": "text",
}  # fmt: skip
VALUES = {
    "text": "'a'",
    "texts-only": "['a']",
    "table": "{ k = { k = 'a' } }",
    "list": "[{ of = 'k', that = 'k > 1' }]",
    "number": "3",
    "numbers": "[1, 2]",
    "bool": "true",
}
WRONG_TYPES = [
    (key, kind)
    for key, right in TYPES.items()
    for kind in VALUES
    if kind not in right.replace("texts", "text texts-only").split()
    # One text is no list of them, where a list is asked for.
    or (kind == "text" and "text" not in right.replace("texts", "text").split())
]


@pytest.mark.parametrize(("key", "kind"), WRONG_TYPES)
def test_value_of_a_wrong_type_is_an_error_of_its_key(tmp_path: Path, key: str, kind: str) -> None:
    document = "schema = \"op(Tensor x, Tensor? y, int k=1, str mode='a') -> Tensor\"\n"
    if key == "schema":
        document = ""
    with pytest.raises(ContractError) as caught:
        read(tmp_path, f"[op]\n{document}{key} = {VALUES[kind]}")
    assert str(caught.value).startswith("ops.toml: [op]: ")
    assert key.split(".")[0] in str(caught.value)


@pytest.mark.parametrize("key", ["of", "that", "when", "says"])
def test_value_of_a_wrong_type_in_a_rule_is_an_error(tmp_path: Path, key: str) -> None:
    rule = {"of": "'x'", "that": "'D > 1'", "says": "'a'", key: "3"}
    line = ", ".join(f"{name} = {value}" for name, value in rule.items())
    with pytest.raises(ContractError, match=rf"\[op\]: rules.{key}: write a text in quotes, got 3"):
        read(tmp_path, f"{BASE}rules = [{{ {line} }}]{TENSOR}")


WRONG_ELSEWHERE = {
    "kind without shape": ("[kinds.k]\ndtype = 'int8'\n[op]\nschema = 'op() -> ()'", "[kinds.k]: 'shape' is missing"),
    "kind that is no table": ("kinds.k = 3\n[op]\nschema = 'op() -> ()'", "[kinds.k]: write a table"),
    "fits of a group": (
        "[groups.g]\norder = ''\nnpu.fits.a = 'k > 1'\n[op]\nschema = 'op(int k) -> ()'\ninclude = 'g'",
        "[groups.g]: npu: unknown key 'fits'",
    ),
    "graph of an optional int": (
        "[op]\nschema = 'op(Tensor x, int? k) -> Tensor'\nnpu.graph = 'Op(x=x, k=k) -> y'",
        "'k' is of type int?, and an operator takes tensors, and attributes of type int, float, bool, str or int[]",
    ),
    "unused kind": ("[kinds.k]\nshape = 'N'\n[op]\nschema = 'op() -> ()'", "[kinds.k]: no tensor is of it"),
    "unused group": ("[groups.g]\norder = ''\n[op]\nschema = 'op() -> ()'", "[groups.g]: no op includes it"),
    "overload alone": ("[op.out]\nschema = 'op.out() -> ()'", "an overload is written [\"op.out\"]"),
    "nothing": ("", "ops.toml: there is no op in it; begin one with [my_op]"),
    "no TOML": ("[op", "ops.toml: "),
    "no schema": ("[op]", "ops.toml: [op]: schema is missing; every table but kinds and groups is an op"),
    "another op's schema": (
        '[op]\nschema = "other() -> ()"',
        "ops.toml: [op]: schema: it is the schema of 'other'",
    ),
    "key of a kind": ("[kinds.k]\nshpae = 'A'\n[op]\nschema = 'op() -> ()'", "[kinds.k]: unknown key 'shpae'"),
    "key of a group": ("[groups.g]\nordre = 'x'\n[op]\nschema = 'op() -> ()'", "[groups.g]: unknown key 'ordre'"),
    "group without order": (
        "[groups.g]\ntensors.x = {}\n[op]\nschema = 'op() -> ()'",
        '[groups.g]: order is missing; say in which order its tensors are checked: order = "x"',
    ),
    "circular groups": (
        "[groups.a]\norder = ''\ninclude = 'b'\n[groups.b]\norder = ''\ninclude = 'a'\n[op]\nschema = 'op() -> ()'\ninclude = 'a'",
        "ops.toml: [op]: include: circular: a -> b -> a",
    ),
    "output of an op without tensors": (
        "[op]\nschema = 'op(int k) -> Tensor'\noutputs.z = { shape = 'k', dtype = 'int8' }",
        "outputs.z: no argument is a Tensor that says its device",
    ),
    "output that is no tensor": (
        "[op]\nschema = 'op(Tensor x) -> int'\noutputs.z = { like = 'x' }",
        "outputs.z: the schema returns int here",
    ),
    "argument called as a dtype": ("[op]\nschema = 'op(int bool) -> ()'", "'bool' is a dtype"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_ELSEWHERE)
def test_error_outside_of_an_op_names_its_place(tmp_path: Path, case: str) -> None:
    text, reason = WRONG_ELSEWHERE[case]
    with pytest.raises(ContractError) as caught:
        read(tmp_path, text)
    assert reason in str(caught.value)


def test_missing_file_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r'ops.toml is missing; .* schema = "my_op\('):
        ops_file.read(tmp_path / "ops.toml")


def test_what_is_left_out_has_a_default_in_the_data(tmp_path: Path) -> None:
    [op] = read(tmp_path, '[op]\nschema = "op(Tensor x) -> ()"')
    assert op.data["rules"] == []
    assert op.outputs == ()
    assert op.data["npu"] == {"limits": {}, "fits": {}, "launch": [], "graph": []}


def test_data_reads_as_the_file_did(tmp_path: Path) -> None:
    [op] = read(tmp_path, BASE + TENSOR + OUTPUT)
    again = contract_data.read_contract(json.loads(json.dumps(op.data)))
    assert again.data == op.data
    assert again.schema == op.schema
