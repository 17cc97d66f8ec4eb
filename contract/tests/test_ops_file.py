"""ops.toml: what it says, and errors that name file, op and key."""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

import pytest
from custom_pypto_contract import notation, ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.errors import ContractError

# A contract that is right; each case adds to it, or replaces what it says.
BASE = """
[templates.row]
parameters = "N"
shape = "*shape N"

[groups.both]
check_order = "x"
tensors.x = { template = "row(D)" }

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


def read(folder: Path, text: str) -> tuple[OpContract, ...]:
    return ops_file.read(write(folder, text)).ops


def test_base_is_right(tmp_path: Path) -> None:
    [op] = read(tmp_path, BASE + TENSOR + OUTPUT)
    assert [tensor.name for tensor in op.tensors] == ["x", "y"]
    assert op.dims == {"shape": True, "D": False}


WRONG = {
    "key of an op": ("rule = []", "has no key 'rule'; did you mean 'rules'?"),
    "key of a tensor": ("tensors.y = { shap = 'D' }", "tensors.y has no key 'shap'; did you mean 'shape'?"),
    "key of an output": ("outputs.z = { like = 'x', of = 'x' }", "outputs.z has no key 'of'; allowed: shape, dtype, like"),
    "key of a rule": ("rules = [{ argument = 'x', if = 'D > 1', check = 'D > 1' }]", "rules[0] has no key 'if'"),
    "key of npu": ("npu.limit = []", "npu has no key 'limit'; did you mean 'limits'?"),
    "rule without argument": ("rules = [{ check = 'D > 1' }]", "rules[0].argument is missing"),
    "rule without message": ("rules = [{ argument = 'x', check = 'D != 2' }]", "write the error's words as 'message'"),
    "rule of nothing": ("rules = [{ argument = 'z', check = 'D > 1', message = 'a' }]", "there is no argument 'z'"),
    "rule of an unknown dim": ("rules = [{ argument = 'x', check = 'DD > 1', message = 'a' }]", "'DD' is no argument, no dtype and no dim of a tensor; did you mean 'D'?"),
    "message with an unknown dim": ("rules = [{ argument = 'x', check = 'D > 1', message = '{E}' }]", "'E' is no argument"),
    "no expression": ("rules = [{ argument = 'x', check = 'D >', message = 'a' }]", "'D >' is no expression"),
    "call in an expression": ("rules = [{ argument = 'x', check = 'len(x)', message = 'a' }]", "a contract has no Call"),
    "division": ("rules = [{ argument = 'x', check = 'D / 2 > 1', message = 'a' }]", "a contract has no Div"),
    "attribute": ("rules = [{ argument = 'x', check = 'x.size > 1', message = 'a' }]", "a tensor has no 'size'"),
    "attribute of a number": ("rules = [{ argument = 'k', check = 'k.ndim > 1', message = 'a' }]", "'k' is of type int, which has no 'ndim'"),
    "text and number": ("rules = [{ argument = 'k', check = 'k == mode', message = 'a' }]", "'k', of type int, is compared with one of type str"),
    "order of texts": ("rules = [{ argument = 'mode', check = \"mode > 'a'\", message = 'a' }]", "is compared with one of type str"),
    "number for a bool": ("rules = [{ argument = 'k', check = 'k + 1', message = 'a' }]", "is of type int, where bool is needed"),
    "tensor for a number": ("rules = [{ argument = 'x', check = 'x > 1', message = 'a' }]", "of type tensor"),
    "tensor in a message": ("rules = [{ argument = 'x', check = 'D > 1', message = '{x}' }]", "is of type tensor, which no message shows"),
    "None elsewhere": ("rules = [{ argument = 'y', check = 'y == None', message = 'a' }]", "write 'is None'"),
    "list elsewhere": ("rules = [{ argument = 'k', check = 'k == (1, 2)', message = 'a' }]", "'in' is followed by values"),
    "part of a shape": ("rules = [{ argument = 'x', check = 'x.shape[1:] == x.shape', message = 'a' }]", "a part of a shape is written x.shape[:-2]"),
    "variants of any text": ("tensors.y.shape.mode = { a = 'D', b = 'D D' }", "scalars: 'mode' chooses a variant; write which values it can have: mode = \"in ('a', 'b')\""),
    "scalar that is none": ("scalars.x = '>= 1'", "scalars"),
    "tensor that is none": ("tensors.yy = {}", "the schema has no tensor 'yy'; did you mean 'y'?"),
    "dtype": ("tensors.y = { dtype = 'float23' }", "uint8 bool; did you mean 'float32'?"),
    "dtype of none": ("tensors.y = { dtype = '=xx' }", "there is no tensor 'xx'; did you mean 'x'?"),
    "dtype of what may be None": ("tensors.y = { dtype = '=y' }", "dtype: 'y' may be None; name a tensor that every call gives"),
    "two dtypes": ("tensors.y = { dtype = '=x =x' }", "names two tensors"),
    "strides": ("tensors.y = { strides = 'first' }", "tensors.y.strides must be one of any, last_dim_contiguous, contiguous, got 'first'"),
    "variadic dim behind": ("tensors.y = { shape = 'D *shape' }", "*name can stand at the front only"),
    "dim that is unbound": ("tensors.y = { shape = 'D*E' }", "'D*E' uses 'E', which no tensor before it has"),
    "dim that is a tensor": ("tensors.y = { shape = 'x D' }", "'x' is of type tensor, and no size"),
    "dim that is a text": ("tensors.y = { shape = 'mode' }", "'mode' is of type str, and no size"),
    "dim that may be None": ("tensors.y = { shape = 'y.ndim' }", "uses 'y', which may be None"),
    "chosen by two": ("tensors.y.shape = { mode = { a = 'D' }, flag = { true = 'D' } }", "it is chosen by one thing"),
    "chosen by nothing": ("tensors.y.shape.mod = { a = 'D' }", "did you mean 'mode'?"),
    "value of a bool": ("tensors.y.shape.flag = { maybe = 'D' }", "flag cannot be 'maybe'"),
    "value of a number of dims": ("tensors.y.shape.\"x.ndim\" = { two = 'D' }", "x.ndim cannot be 'two'"),
    "template": ("tensors.y = { template = 'rows(D)' }", "there is no [templates.rows]; did you mean 'row'?"),
    "parameters of a template": ("tensors.y = { template = 'row' }", "row takes 1 parameters, got 'row'"),
    "group": ("include = 'boths'", "there is no [groups.boths]; did you mean 'both'?"),
    "check order": ("check_order = 'x z'", "check_order: there is no tensor 'z'"),
    "number of outputs": ("outputs = {}", "outputs: there are 0, but the schema returns 1"),
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
    "graph of an output": ("npu.graph = 'Op(x=z) -> y'\noutputs.z = { like = 'x' }", "'z' is no argument; outputs stand behind '->'"),
    "required_when of a Tensor": ("tensors.x.required_when.flag = { true = 'a' }", "tensors.x.required_when: the schema has a Tensor, which is never None"),
    "allowed_when of a Tensor": ("tensors.x.allowed_when.flag = [true]", "tensors.x.allowed_when: the schema has a Tensor, which is never None"),
    "ndim of a fixed shape": ("tensors.y = { shape = 'D', ndim = [1] }", "tensors.y.ndim: only a shape that begins with *name has it"),
    "like and shape": ("outputs.z = { like = 'x', shape = 'D' }", "like says shape and dtype"),
    "output called as an argument": ("outputs.x = { like = 'x' }", "outputs.x: an argument is called 'x' too"),
    "output that is no name": ("outputs.'a b' = { like = 'x' }", "outputs has the key 'a b': use letters, digits and '_'"),
    "supports that is no name": ("npu.supports.'a b' = 'D > 1'", "npu.supports has the key 'a b': use letters"),
    "cost that is no number": ("flops = 'D > 1'", "flops: 'D > 1' is of type bool, where int is needed"),
    "cost with another function": ("flops = 'max(D, 1)'", "flops: 'max(D, 1)': the only function is min(a, b)"),
    "cost of an unknown name": ("bytes = 'E'", "bytes: 'E' is no argument, no dtype and no dim of a tensor"),
    "cost of what may be None": ("bytes = 'y.nbytes'", "bytes: 'y.nbytes' uses 'y', which may be None"),
    "cost chosen by nothing": ("flops.mod = { a = 'D' }", "flops: there is no argument 'mod' to choose by; did you mean 'mode'?"),
    "rule with a function": ("rules = [{ argument = 'k', check = 'min(k, 1) == 1', message = 'a' }]", "a contract has no Call"),
    "rule with an attribute of costs": ("rules = [{ argument = 'x', check = 'x.numel > 1', message = 'a' }]", "a tensor has no 'numel', but ndim"),
    "ellipsis": ("tensors.y = { shape = '... D' }", "any number of dims has a name: write *name"),
    "braces in a hint": ("tensors.y = { hint = '{foo}' }", "tensors.y.hint is shown as it is, so it has no braces"),
    "braces in a description": ("descriptions.D = '{foo}'", "descriptions.D is shown as it is, so it has no braces"),
    "limits without rules": ("npu.limits.k = { reason = 'a' }", "npu.limits.k.rules is missing"),
    "overload": ("out.schema = 'op.out(Tensor x) -> ()'", "an overload is written [\"op.out\"]"),
    "launch of what is none": ("npu.launch = 'aclnnOp(w)'", "'w' is no argument"),
    "launch of an expression": ("npu.launch = 'aclnnOp(k + 1)'", "cannot be passed"),
    "launch of a negated argument": ("npu.launch = 'aclnnOp(-k)'", "cannot be passed"),
    "supports of what may be None": ("npu.supports.fast = 'y.ndim > 1'", "npu.supports.fast: 'y.ndim > 1' uses 'y' where it may be None; test that first"),
    "None that is tested too late": ("rules = [{ argument = 'y', check = 'y.ndim > 1 or y is None', message = 'a' }]", "uses 'y' where it may be None; test that first: 'y is None or ..'"),
    "message of what is None": ("rules = [{ argument = 'y', check = 'y is not None', message = 'got {y.shape}' }]", "message: 'y.shape' uses 'y' where it may be None"),
    "number of more than 64 bits": ("rules = [{ argument = 'x', check = 'D < 9223372036854775808', message = 'a' }]", "does not fit into 64 bits"),
    "number that is infinite": ("scalars.k = '< 1e999'", "does not fit into 64 bits"),
    "variants of any number": ("tensors.y.shape.k = { 1 = 'D', 2 = 'D D' }", "write which values it can have: k = \"in (1, 2)\""),
    "variants of any number of dims": ("tensors.y.shape.\"x.ndim\" = { 1 = 'D' }", "write which it can have: tensors.x.ndim = [1]"),
    "output without a variant": ("outputs.z = { shape.flag = { true = 'D' }, dtype = '=x' }", "outputs.z.shape: there is none for flag False"),
    "escape sequence": ('summary = "a \\u001b[2J"', r"summary must have no control characters, got 'a \x1b[2J'"),
    "NUL": ('rules = [{ argument = "k", check = "k > 1", message = "a\\u0000b" }]', "rules[0].message must have no control"),
    "launch without an output": ("npu.launch = 'aclnnOp(x)'\noutputs.z = { like = 'x' }", "npu.launch: 'aclnnOp(x)' does not pass the output 'z', so nothing would write it; pass it"),
    "dim of an output that a call may leave out": (
        "tensors.y = { shape = 'N' }\noutputs.z = { shape = 'N', dtype = '=x' }",
        "outputs.z: its dim 'N' is one of 'y', which a call may leave out or give empty; use a dim of a tensor that",
    ),
    "dim of an output in a variant": (
        "tensors.y = { shape = 'N', required_when.flag = { true = '' } }\noutputs.z = { shape.flag = { true = 'N', false = 'N' }, dtype = '=x' }",
        "its dim 'N' is one of 'y', which a call with flag False may leave out or give empty",
    ),
    "length of a Tensor": ("tensors.x.length = 'E'", "tensors.x.length: only a Tensor[] has it"),
    "scalar with a word": ("scalars.k = 'finite'", "must go on after the name, as '>= 1', '> 0 and < inf' or 'in (0, 3)' do"),
    "supports": ("npu.supports.fast = 'D + 1'", "npu.supports.fast: 'D + 1' is of type int, where bool is needed"),
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


SCHEMA = "schema = \"op(Tensor x, Tensor? y, int k=1, str mode='a') -> Tensor\""
TABLES = {
    "{}": notation.OP,
    "tensors.y.{}": (*notation.TENSOR, notation.TEMPLATE_OF_TENSOR),
    "outputs.z.{}": notation.OUTPUT,
    "npu.{}": notation.NPU,
    "npu.limits.k.{}": notation.LIMITS_OF_KERNEL,
    "rules = [{{ {} }}]": notation.RULE[:1],
    "rules = [{{ argument = 'k', {} }}]": notation.RULE[1:2],
    "rules = [{{ argument = 'k', check = 'k > 1', {} }}]": notation.RULE[2:],
}
# No key takes a date, a list of a table without keys, or a table of a date.
VALUES = ("1979-05-27", "[{}]", "{ a = 1979-05-27 }")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(
    ("line", "key"), [(line, key.name) for line, keys in TABLES.items() for key in keys]
)
def test_value_of_a_wrong_type_is_an_error_of_its_key(
    tmp_path: Path, line: str, key: str, value: str
) -> None:
    schema = "" if key == "schema" else SCHEMA
    with pytest.raises(ContractError) as caught:
        read(tmp_path, f"[op]\n{schema}\n{line.format(f'{key} = {value}')}")
    assert str(caught.value).startswith("ops.toml: [op]: ")
    assert key in str(caught.value)


WRONG_ELSEWHERE = {
    "template without shape": ("[templates.k]\ndtype = 'int8'\n[op]\nschema = 'op() -> ()'", "[templates.k.shape] is missing"),
    "template that is no table": ("templates.k = 3\n[op]\nschema = 'op() -> ()'", "[templates.k] must be a table, got 3"),
    "supports of a group": ("[groups.g]\ncheck_order = ''\nnpu.supports.a = 'k > 1'\n[op]\nschema = 'op(int k) -> ()'\ninclude = 'g'", "[groups.g.npu] has no key 'supports'"),
    "graph of an optional int": (
        "[op]\nschema = 'op(Tensor x, int? k) -> Tensor'\nnpu.graph = 'Op(x=x, k=k) -> y'",
        "'k' is of type int?, and an operator takes tensors, and attributes of type int, float, bool, str or int[]",
    ),
    "unused template": ("[templates.k]\nshape = 'N'\n[op]\nschema = 'op() -> ()'", "[templates.k]: no tensor has it"),
    "unused group": ("[groups.g]\ncheck_order = ''\n[op]\nschema = 'op() -> ()'", "[groups.g]: no op includes it"),
    "overload alone": ("[op.out]\nschema = 'op.out() -> ()'", "an overload is written [\"op.out\"]"),
    "nothing": ("", "ops.toml: there is no op in it; begin one with [my_op]"),
    "no TOML": ("[op", "ops.toml: "),
    "no schema": ("[op]", "ops.toml: [op]: schema is missing; every table but constants, templates or groups is an op"),
    "another op's schema": ('[op]\nschema = "other() -> ()"', "ops.toml: [op]: schema: it is the schema of 'other'"),
    "key of a template": ("[templates.k]\nshpae = 'A'\n[op]\nschema = 'op() -> ()'", "[templates.k] has no key 'shpae'; did you mean 'shape'?"),
    "key of a group": ("[groups.g]\nordre = 'x'\n[op]\nschema = 'op() -> ()'", "[groups.g] has no key 'ordre'"),
    "group without check order": ("[groups.g]\ntensors.x = {}\n[op]\nschema = 'op() -> ()'", '[groups.g] needs the order in which its tensors are checked: check_order = "x"'),
    "circular groups": (
        "[groups.a]\ncheck_order = ''\ninclude = 'b'\n[groups.b]\ncheck_order = ''\ninclude = 'a'\n[op]\nschema = 'op() -> ()'\ninclude = 'a'",
        "ops.toml: [op]: include: circular: a -> b -> a",
    ),
    "output of an op without tensors": ("[op]\nschema = 'op(int k) -> Tensor'\noutputs.z = { shape = 'k', dtype = 'int8' }", "outputs.z: no argument is a Tensor that says its device"),
    "output that is no tensor": ("[op]\nschema = 'op(Tensor x) -> int'\noutputs.z = { like = 'x' }", "outputs.z: the schema returns int here"),
    "argument called infinity": ("[op]\nschema = 'op(float inf) -> ()'", "'inf' is infinity, and no argument's name"),
    "argument called as a dtype": ("[op]\nschema = 'op(int bool) -> ()'", "'bool' is a dtype"),
}  # fmt: skip


LISTS = """
[op]
schema = "op(Tensor[] xs, Tensor[]? ys, Tensor z) -> {returns}"
tensors.xs = {{ length = "E", shape = "M[i] K", dtype = "float32" }}
{z}
{line}
"""
# What the op returns, a line, and the reason.
WRONG_LISTS = {
    "element of another length": ("Tensor[]", "tensors.ys = { length = 'F', shape = 'M[i]' }", "tensors.ys: shape: 'M[i]' is of lists with the length 'E', and this one has 'F'"),
    "element without length": ("Tensor[]", "tensors.ys.shape = 'N[i]'", "'N[i]' is a size of each tensor of a list, whose length has a name: write length"),
    "element of a tensor": ("Tensor[]", "tensors.z.shape = 'M[i]'", "'M[i]' is a size of each tensor of a list"),
    "element as a size": ("Tensor[]", "tensors.ys = { length = 'E', shape = 'M' }", "'M' is of type int[i], and no size"),
    "shared dim as an element": ("Tensor[]", "tensors.ys = { length = 'E', shape = 'K[i]' }", "tensors.ys: shape: 'K': it is of type int, where sizes is needed"),
    "shapes by number of dims": ("Tensor[]", "tensors.ys.shape = ['K', 'K K']", "all tensors of a list have one shape"),
    "graph of a list that is returned": ("Tensor[]", "npu.graph = 'Op(x=xs) -> y'", "a line cannot say how many results that are; give a converter by"),
    "length that is no number": ("Tensor[]", "tensors.ys.length = '*E'", "'*E' is no number of tensors"),
    "attribute": ("Tensor[]", "rules = [{ argument = 'xs', check = 'xs.ndim == 2', message = 'a' }]", "'xs' is of type tensors, which has no 'ndim'"),
    "length of a tensor in a rule": ("Tensor[]", "rules = [{ argument = 'xs', check = 'z.length == 2', message = 'a' }]", "'z' is of type tensor, which has no 'length'"),
    "chosen by a list": ("Tensor[]", "tensors.z.shape.'xs.ndim' = { 1 = 'K' }", "'xs.ndim' is nothing to choose by"),
    "output without length": ("Tensor[]", "outputs.r = { shape = 'z.ndim', dtype = 'int8' }", "write the length of the list beside shape and dtype"),
    "output of unknown elements": ("Tensor[]", "outputs.r = { length = 'E', shape = 'N[i]', dtype = '=xs' }", "'N[i]' is a size of each tensor of a list"),
    "output like a tensor": ("Tensor[]", "outputs.r.like = 'z'", "like: 'z' is no Tensor[]"),
    "length of one output": ("Tensor", "outputs.r = { length = 'E', shape = 'K', dtype = 'int8' }", "the schema returns a Tensor here, which has no length"),
    "dim of a list that may be empty": ("Tensor", "outputs.r = { shape = 'K', dtype = 'int8' }", "outputs.r: its dim 'K' is one of 'xs', which a call may leave out or give empty"),
    "dtype of a list that may be empty": ("Tensor", "outputs.r = { shape = 'E', dtype = '=xs' }", "outputs.r: its dtype is that of 'xs', which may be empty; name its dtype"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_LISTS)
def test_error_in_a_list_names_its_place(tmp_path: Path, case: str) -> None:
    returns, line, reason = WRONG_LISTS[case]
    z = "" if line.startswith("tensors.z") else "tensors.z = {}"
    with pytest.raises(ContractError) as caught:
        read(tmp_path, LISTS.format(returns=returns, z=z, line=line))
    assert reason in str(caught.value)


def test_a_rule_may_say_that_a_list_is_not_empty(tmp_path: Path) -> None:
    line = (
        'rules = [{ argument = "xs", check = "E >= 1", message = "must not be empty" }]\n'
        'outputs.r = { shape = "K", dtype = "=xs" }'
    )
    [op] = read(tmp_path, LISTS.format(returns="Tensor", z="tensors.z = {}", line=line))
    assert op.outputs is not None


@pytest.mark.parametrize("case", WRONG_ELSEWHERE)
def test_error_outside_of_an_op_names_its_place(tmp_path: Path, case: str) -> None:
    text, reason = WRONG_ELSEWHERE[case]
    with pytest.raises(ContractError) as caught:
        read(tmp_path, text)
    assert reason in str(caught.value)


def test_missing_file_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(
        ContractError, match=r'ops.toml is missing; [^\n]*\n\[my_op\]\nschema = "my_op\('
    ):
        ops_file.read(tmp_path / "ops.toml")


def test_what_is_left_out_has_a_default_in_the_data(tmp_path: Path) -> None:
    [op] = read(tmp_path, '[op]\nschema = "op(Tensor x) -> ()"')
    assert op.data["rules"] == []
    assert op.outputs == ()
    assert op.data["npu"] == {"limits": {}, "supports": {}, "launch": [], "graph": []}
