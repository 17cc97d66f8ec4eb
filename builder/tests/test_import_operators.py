"""custom-pypto import --reg-op and --aclnn: operators of CANN as ops of ops.toml."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from add_custom_operator import ADD_CUSTOM, ADD_CUSTOM_HEADER
from custom_pypto_build.compiler import core_include
from custom_pypto_build.importing import dtypes as cann_dtypes
from custom_pypto_build.importing import read_files
from custom_pypto_build.importing.model import ImportedOp, ImportingError, Subject
from custom_pypto_build.importing.read_files import Sources
from custom_pypto_contract.dtypes import DTYPES

Texts = dict[str, str | list[str]]
Import = Callable[[Texts], list[ImportedOp]]


@pytest.fixture
def read(tmp_path: Path) -> Import:
    """Import texts, written into files: those of an option are called <option>0, <option>1..."""

    def read(texts: Texts) -> list[ImportedOp]:
        paths = {}
        for option, given in texts.items():
            files = [given] if isinstance(given, str) else given
            paths[option] = tuple(tmp_path / f"{option}{i}" for i in range(len(files)))
            for path, text in zip(paths[option], files, strict=True):
                path.write_text(text, encoding="utf-8")
        return read_files.read(Sources(**paths)).ops

    return read


def op_def(*statements: str) -> str:
    body = "".join(statements)
    return f"class Mix : public OpDef {{ Mix(const char* n) : OpDef(n) {{ {body} }} }};"


def tensor(what: str, dtypes: str = "FLOAT", kind: str = "REQUIRED") -> str:
    """Describe an input or an output, such as 'Input x'."""
    role, _, name = what.partition(" ")
    listed = ", ".join(f"ge::DT_{each}" for each in dtypes.split())
    return f'this->{role}("{name}").ParamType({kind}).DataType({{{listed}}});\n'


def attribute(value: str, kind: str = "OPTIONAL", name: str = "a") -> str:
    return f'this->Attr("{name}").AttrType({kind}).{value};'


def header(parameters: str, kernel: str = "Mix") -> str:
    ends = "uint64_t *workspaceSize, aclOpExecutor **executor);"
    return f"aclnnStatus aclnn{kernel}GetWorkspaceSize({parameters}, {ends}"


def generated(parameters: str) -> str:
    return f"// this file was generated automatically\n{header(parameters)}"


def shape_function(body: str) -> str:
    return f"graphStatus Infer(gert::InferShapeContext *context) {{ {body} }}\n"


def prototype(body: str) -> str:
    return f"REG_OP(Mix){body}.OP_END_FACTORY_REG(Mix)"


def subjects(op: ImportedOp) -> list[str]:
    return [f"{each.place} {each.subject.name}" for each in op.decisions]


SUFFIXED = ("Input scale", "Input y", "Output scale_out", "Output z")
SHAPES = "auto x = context->GetInputShape(0); auto y = context->GetOutputShape(0);"
WITH_INFER = (tensor("Input x"), tensor("Output y"), "this->SetInferShape(Infer);")
NO_KERNEL = "reg_op0:1 KERNEL"
OTHER_FILE = """
constexpr size_t SECOND = 1;
static ge::graphStatus Infer(gert::InferShapeContext* context)
{
    OPS_LOG_I(context->GetNodeName(), "begin");
    const gert::Shape* w = context->GetInputShape(SECOND);
    OPS_LOG_E_IF_NULL(context, w, return ge::GRAPH_FAILED);
    auto y = context->GetOutputShape(0);
    if (y == nullptr) { return ge::GRAPH_FAILED; }
    *y = *w;
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_INFERSHAPE(Mix)
    .InferShape(Infer);
"""
FOLD = """
REG_OP(Mix)
    .INPUT(x, "T")
    .OPTIONAL_INPUT(mask, TensorType({DT_BOOL}))  // .INPUT(comment, "T")
    .OUTPUT(y, "T")
    .REQUIRED_ATTR(axes, ListInt)
    .ATTR(mode, String, "sum")
    .DATATYPE(T, TensorType({DT_FLOAT16, DT_FLOAT}))
    .OP_END_FACTORY_REG(Mix)
"""
LISTS = ".DYNAMIC_INPUT(xs, {0}).INPUT(y, {0}).OUTPUT(y, {0})".format("TensorType({DT_FLOAT})")
YAML = """\
custom:
- func: mix_(Tensor(a!) x, int k, float r) -> Tensor(a!)
  op_api: all_version
  gen_opapi:
    new_params: {t: '"TND"'}
    exec: aclnnMix, x, t, k, r
"""
CALLED = "aclTensor *x, char *t, int8_t k, double r"
# The texts of files, and what the only op in them is; `subjects` are all its decisions.
READ: dict[str, tuple[Texts, dict[str, Any]]] = {
    # With its header, docs/import.md shows what is written; test_import_ops_toml.py compares.
    "no header": (
        {"reg_op": ADD_CUSTOM},
        {"subjects": ["reg_op0:17 KERNEL"], "launch": "aclnnAddCustom(x, y, z)"},
    ),
    "order of the header": (
        {
            "reg_op": op_def(
                tensor("Input first_x"), tensor("Input mask", "BOOL", "OPTIONAL"),
                tensor("Output first_x"), attribute("Int()", "REQUIRED", "k"),
            ),
            "aclnn": header("aclTensor *firstXRef, int64_t k, const aclTensor *maskOptional"),
        },
        {
            "subjects": [],
            "schema": "mix(Tensor(a!) first_x, Tensor? mask=None, *, int k) -> ()",
            "launch": "aclnnMix(first_x, k, mask)",
            "graph": "Mix(first_x=first_x, mask=mask, k=k) -> first_x",
        },
    ),
    "names that end as a suffix does": (
        {
            "reg_op": op_def(*map(tensor, SUFFIXED)),
            "aclnn": header(
                "const aclTensor *yOptional, const aclTensor *scale,"
                " const aclTensor *zOutOptional, const aclTensor *scaleOutOut"
            ),
        },
        {"launch": "aclnnMix(y, scale, z, scale_out)"},
    ),
    "dtypes of one column": (
        {
            "reg_op": op_def(
                tensor("Input x", "FLOAT16 BF16 BF16"), tensor("Input w", "FLOAT16 FLOAT BF16"),
                tensor("Input v", "FLOAT16 BF16 BF16"), tensor("Output y", "INT8 INT8 INT8"),
            )
        },
        {
            "tensors": {
                "x": {"dtype": "float16 bfloat16"},
                "w": {"dtype": "float16 float32 bfloat16"},
                "v": {"dtype": "=x"},
            },
            "outputs": {"y": {"shape": "?", "dtype": "int8"}},
            "checks": "w: (x.dtype == float16 and w.dtype == float16) or"
            " (x.dtype == bfloat16 and w.dtype == float32) or"
            " (x.dtype == bfloat16 and w.dtype == bfloat16)",
        },
    ),
    "dtypes of an optional input": (
        {
            "reg_op": op_def(
                tensor("Input x", "FLOAT16 BF16"), tensor("Input m", "BOOL INT8", "OPTIONAL")
            )
        },
        {
            "checks": "m: (x.dtype == float16 and m.dtype == bool) or"
            " (x.dtype == bfloat16 and m.dtype == int8)"
        },
    ),
    "any dtype": (
        {"reg_op": prototype(".INPUT(x, TensorType::ALL())")},
        {"tensors": {"x": {}}, "subjects": [NO_KERNEL]},
    ),
    "dtypes in a constant": (
        {
            "reg_op": "const std::vector<ge::DataType> dtypes = {ge::DT_INT8, ge::DT_BOOL};\n"
            + op_def('this->Input("x").DataType(dtypes);')
        },
        {"tensors": {"x": {"dtype": "int8 bool"}}},
    ),
    "dtype that ops.toml lacks": (
        {"reg_op": op_def(tensor("Input x", "FLOAT16 INT4"), tensor("Output y", "FLOAT INT8"))},
        {
            "tensors": {"x": {"dtype": "float16"}},
            "outputs": {"y": {"shape": "?", "dtype": "float32"}},
            "narrower": ["x: ops.toml has no dtype for DT_INT4; left out"],
        },
    ),
    "shape function in another file": (
        {"reg_op": [op_def(*map(tensor, ("Input x", "Input w", "Output y"))), OTHER_FILE]},
        {"outputs": {"y": {"shape": "*w_shape", "dtype": "float32"}}, "subjects": [NO_KERNEL]},
    ),
    "lists of one SoC": (
        {
            "reg_op": op_def(
                tensor("Input x"), "OpAICoreConfig soc;\n",
                'soc.Input("x").DataType({ge::DT_INT8});\nsoc.DynamicRankSupportFlag(true);',
            )
        },
        {"tensors": {"x": {"dtype": "float32"}}, "subjects": ["reg_op0:3 NARROWER", NO_KERNEL]},
    ),
    "prototype": (
        {
            "reg_op": FOLD,
            "aclnn": header(
                "const aclTensor *x, const aclTensor *maskOptional, const aclIntArray *axes,"
                " char *modeOptional, const aclTensor *out"
            ),
        },
        {
            "schema": "mix(Tensor x, Tensor? mask=None, *, int[] axes, str mode='sum') -> Tensor",
            "tensors": {"x": {"dtype": "float16 float32"}, "mask": {"dtype": "bool"}},
            "outputs": {"y": {"shape": "?", "dtype": "=x"}},
            "launch": "aclnnMix(x, mask, axes, mode, y)",
            "graph": "Mix(x=x, mask=mask, axes=axes, mode=mode) -> y",
            "subjects": ["reg_op0:5 SHAPE"],
        },
    ),
    "list of tensors": (
        {
            "reg_op": prototype(LISTS),
            "aclnn": header("const aclTensorList *xs, aclTensor *yRef"),
        },
        {
            "schema": "mix(Tensor[] xs, Tensor(a!) y) -> ()",
            "is_complete": True,
            "graph": "Mix(xs=xs, y=y) -> y",
            "subjects": [],
        },
    ),
    "header alone": (
        {
            "aclnn": generated(
                "aclTensor *stateRef, const aclTensor *maskOptional, const aclTensorList *xs,"
                " const aclFloatArray *scales, bool flag, char *mode, const aclTensor *yOut"
            )
        },
        {
            "schema": "mix(Tensor(a!) stateRef, Tensor? maskOptional, Tensor[] xs, float[] scales,"
            " bool flag, str mode) -> Tensor",
            "launch": "aclnnMix(stateRef, maskOptional, xs, scales, flag, mode, yOut)",
            "subjects": ["aclnn0:2 SHAPE"],
        },
    ),
    "header that a person wrote": (
        {"aclnn": header("const aclTensor *x")}, {"subjects": ["aclnn0:1 SCHEMA"]}
    ),
    "call of op-plugin as the header declares it": (
        {"op_plugin": YAML, "aclnn": header(CALLED)}, {"subjects": []}
    ),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), READ.values(), ids=READ)
def test_what_is_understood_is_an_op(read: Import, texts: Texts, expected: dict[str, Any]) -> None:
    [op] = read(texts)
    found = {
        "subjects": subjects(op),
        "checks": "\n".join(f"{rule['argument']}: {rule['check']}" for rule in op.rules),
        "narrower": [each.text for each in op.decisions if each.subject is Subject.NARROWER],
    }
    assert {name: found.get(name, getattr(op, name, None)) for name in expected} == expected


ONE_EACH = op_def(tensor("Input x"), attribute("Int()", "REQUIRED", "k"), tensor("Output z"))
PROTOTYPE = "REG_OP(AddCustom).INPUT(x1, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(AddCustom)"
AFTER_OPTIONAL = (tensor("Input m", "FLOAT", "OPTIONAL"), *WITH_INFER)
SECOND_INPUT = SHAPES.replace("InputShape(0)", "InputShape(1)")
# The texts of files, place and subject of a decision, and a part of its text.
UNDECIDED: dict[str, tuple[Texts, str, str]] = {
    **{
        f"header: {problem}": (
            {"reg_op": ONE_EACH, "aclnn": "\n" + header(parameters)}, "aclnn0:2 KERNEL", problem
        )
        for parameters, problem in (
            ("const aclTensor *x, int64_t k", "the header has no parameter for z"),
            ("const aclTensor *x, int64_t k, int8_t m, aclTensor *out", "parameter 3, `int8_t m`"),
            ("const aclTensor *x, double k, aclTensor *out", "is k, for which a launch passes ano"),
            ("const aclTensor *x, int64_t k, aclTensor *z, aclTensor *out", "as another parameter"),
        )
    },
    **{
        f"dtypes: {text}": ({"reg_op": text}, "reg_op0:1 DTYPE", "")
        for text in (
            op_def('this->Input("x").DataType(dtypes);'),
            op_def('this->Input("x").ParamType(REQUIRED);'),
            prototype(".INPUT(x, TensorType::NumberType())"),
            prototype('.INPUT(x, "T")'),
        )
    },
    "dtype of an output that no input says": (
        {"reg_op": op_def(tensor("Input x", "BF16 BF16"), tensor("Output y", "INT8 BF16"))},
        "reg_op0:2 DTYPE", "",
    ),
    **{
        f"shape: {body}": (
            {"reg_op": shape_function(f"{SHAPES} {body}") + op_def(*WITH_INFER)},
            "reg_op0:3 SHAPE", "",
        )
        for body in (
            "*y = *x; y->SetDim(0, 1); return GRAPH_SUCCESS;",
            "*y = *unknown; return GRAPH_SUCCESS;",
            "if (x->GetDimNum() > 2) { return GRAPH_FAILED; } *y = *x; return GRAPH_SUCCESS;",
        )
    },
    "shape of an input behind one that may be missing": (
        {
            "reg_op": shape_function(f"{SECOND_INPUT} *y = *x; return GRAPH_SUCCESS;")
            + op_def(*AFTER_OPTIONAL)
        },
        "reg_op0:4 SHAPE", "",
    ),
    **{
        f"statement: {statement}": ({"reg_op": op_def("\n", statement)}, "reg_op0:2 ", problem)
        for statement, problem in (
            ('this->Input("v").ValueDepend(OPTIONAL);', "v: .ValueDepend(OPTIONAL)"),
            ('this->MC2().HcclGroup("group");', 'this->MC2().HcclGroup("group")'),
            ("for (auto each : all) { Add(each); }", "for (auto each : all)"),
            (attribute("Int(UINT64_MAX)"), "UINT64_MAX, which no schema can have"),
            (attribute("Int(Limit())"), "Limit(), which no schema can have"),
            (attribute("Int()"), "is not REQUIRED, and has no default"),
            (tensor("Output o", "FLOAT", "DYNAMIC"), "output o is DYNAMIC"),
        )
    },
    **{
        f"prototype: {text}": ({"reg_op": text}, "reg_op0:1 ", "")
        for text in ("REG_OP(A).INPUT(x", "REG_OP(A).INPUT(x, T) OUTPUT", prototype(".ODD(1)"))
    },
    "inputs of a prototype that the class lacks": (
        {"reg_op": [ADD_CUSTOM, PROTOTYPE]}, "", "REG_OP has the inputs x1, the class x, y"
    ),
    "outputs that the prototype lacks": (
        {"reg_op": [ADD_CUSTOM, PROTOTYPE]}, "", "REG_OP has the outputs , the class z"
    ),
    **{
        f"type: {type_}": ({"aclnn": generated(f"{type_} a")}, "aclnn0:2 SCHEMA", "")
        for type_ in ("const aclScalar *", "float", "void *", "const aclTensor **")
    },
    **{
        f"call of op-plugin: {problem}": (
            {"op_plugin": YAML, "aclnn": header(parameters)}, "aclnn0:1 KERNEL", problem
        )
        for parameters, problem in (
            ("aclTensor *x, char *t, double r, int8_t k", "`double r`, gets k"),
            ("aclTensor *x, int8_t k, double r", "the header has 3 arguments, the call 4"),
        )
    },
    "operator that stands twice": (
        {"reg_op": [ADD_CUSTOM, ADD_CUSTOM]}, "", "AddCustom stands at reg_op1:17 too; give one"
    ),
    "header that stands twice and differently": (
        {"reg_op": ADD_CUSTOM, "aclnn": [ADD_CUSTOM_HEADER, ADD_CUSTOM_HEADER.replace("*y", "*k")]},
        "", "aclnnAddCustom has other parameters than at aclnn0:4; give the header",
    ),
    "more than an op can have": (
        {"reg_op": op_def(*(tensor(f"Input x{i}") for i in range(65)))},
        "", "65 inputs and attributes, 0 outputs: an op has at most 64",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "where", "problem"), UNDECIDED.values(), ids=UNDECIDED)
def test_what_is_not_understood_is_a_decision(
    read: Import, texts: Texts, where: str, problem: str
) -> None:
    [op] = read(texts)
    found = [(each, text.text) for each, text in zip(subjects(op), op.decisions, strict=True)]
    assert any(each.startswith(where) and problem in text for each, text in found), found
    assert not op.is_complete
    assert "SHAPE" not in where or op.outputs["y"]["shape"] == "?"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"aclnn": "int x;"}, "aclnn0 declares no kernel; --aclnn takes a header with"),
        ({"reg_op": "int x;"}, "reg_op0 has no operator; --reg-op takes files with"),
    ],
)
def test_nothing_but_files_that_say_nothing_is_an_error(
    read: Import, texts: Texts, message: str
) -> None:
    with pytest.raises(ImportingError, match=message):
        read(texts)


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        ("Int(-1)", "int a=-1"),
        ("Float(1e-6f)", "float a=1e-6"),
        ("Float(LIMIT)", "float a=7.0"),
        ("Bool(false)", "bool a=False"),
        ('String("BSND")', "str a='BSND'"),
        ("ListInt({1, 2})", "int[] a=[1, 2]"),
        ("Int(INT64_MAX)", "int a=9223372036854775807"),
        ("Int(-INT64_MAX)", "int a=-9223372036854775807"),
        ("Int(INT64_MIN)", "int a=-9223372036854775808"),
        ("Int(INT32_MAX)", "int a=2147483647"),
        ("Int(std::numeric_limits<int64_t>::max())", "int a=9223372036854775807"),
        ("Int(std::numeric_limits<std::int16_t>::lowest())", "int a=-32768"),
        ("Int(numeric_limits < uint32_t > :: min ( ))", "int a=0"),
        ("Int(std::numeric_limits<int32_t>::epsilon())", "int a=0"),
        ("Float(FLT_MAX)", "float a=3.4028234663852886e+38"),
        ("Float(std::numeric_limits<float>::lowest())", "float a=-3.4028234663852886e+38"),
        ("Float(std::numeric_limits<double>::epsilon())", "float a=2.220446049250313e-16"),
        ("Float(FLT_MIN)", "float a=1.1754943508222875e-38"),
        ("Int(ge::DT_INT8)", "int a=2"),
        ("Int(ge::DataType::DT_FLOAT8_E4M3FN)", "int a=36"),
        ("Int(DT_FLOAT)", "int a=0"),
        ("ListInt({ge::DT_BF16, INT32_MIN})", "int[] a=[27, -2147483648]"),
        ("Int(LARGEST)", "int a=9223372036854775807"),
    ],
)
def test_a_default_is_a_literal_a_constant_of_the_file_a_limit_or_a_dtype(
    read: Import, value: str, read_as: str
) -> None:
    constants = "constexpr int64_t LARGEST = INT64_MAX;\nconstexpr float LIMIT = 7.0f;\n"
    [op] = read({"reg_op": constants + op_def(attribute(value))})
    assert op.schema == f"mix(*, {read_as}) -> ()"
    assert Subject.SCHEMA not in [each.subject for each in op.decisions]


def test_of_two_ops_with_one_name_only_the_first_is_complete(read: Import) -> None:
    yaml = "custom:\n" + "".join(
        f"- func: {name}(Tensor(a!) x) -> ()\n  op_api: all_version\n"
        "  gen_opapi: {exec: aclnnA}\n"
        for name in ("a.b", "a_b")
    )
    first, second = read({"op_plugin": yaml})
    assert (first.is_complete, second.is_complete) == (True, False)
    assert "a.b at op_plugin0:2 has the same name" in second.decisions[0].text


@pytest.mark.parametrize("name", ["missing", "folder", "bytes", "large"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(ImportingError, match=f"cannot read .*{name}: "):
        read_files.read(Sources(reg_op=(tmp_path / name,)))


def test_dtypes_of_cann_and_of_the_cpp_header_are_those_of_the_contract() -> None:
    assert {*cann_dtypes._DTYPES.values()} == {*DTYPES}
    header = (core_include() / "custom_pypto" / "dtype.h").read_text(encoding="utf-8")
    named = re.findall(r"^CUSTOM_PYPTO_DTYPE_OF\(\w+, (\w+)\)", header, re.MULTILINE)
    # No C++ type has this one's elements.
    assert {*named, "Float8_e4m3fn"} == {*DTYPES.values()}
