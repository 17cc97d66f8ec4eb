"""custom-pypto import --reg-op and --aclnn: operators of CANN as ops of ops.toml."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from add_custom_operator import ADD_CUSTOM, ADD_CUSTOM_HEADER
from custom_pypto_build.compiler import core_include
from custom_pypto_build.importing import dtypes as cann_dtypes
from custom_pypto_build.importing import read_files
from custom_pypto_build.importing.model import ImportedOp, ImportingError, Subject
from custom_pypto_build.importing.read_files import Sources
from custom_pypto_contract.dtypes import DTYPES

Import = Callable[..., list[ImportedOp]]

ENDS = "uint64_t *workspaceSize, aclOpExecutor **executor);"


@pytest.fixture
def read(tmp_path: Path) -> Import:
    """Import texts, written into files."""

    def read(**texts: str | list[str]) -> list[ImportedOp]:
        paths = {}
        for option, given in texts.items():
            files = [given] if isinstance(given, str) else given
            paths[option] = tuple(tmp_path / f"{option}{i}" for i in range(len(files)))
            for path, text in zip(paths[option], files, strict=True):
                path.write_text(text, encoding="utf-8")
        return read_files.read(Sources(**paths)).ops

    return read


def op_def(body: str, name: str = "Mix") -> str:
    return f"class {name} : public OpDef {{ {name}(const char* n) : OpDef(n) {{ {body} }} }};"


def tensor(what: str, dtypes: str, kind: str = "REQUIRED") -> str:
    listed = ", ".join(f"ge::DT_{each}" for each in dtypes.split())
    return f"this->{what}.ParamType({kind}).DataType({{{listed}}});\n"


def subjects(op: ImportedOp) -> list[tuple[str, Subject]]:
    return [(str(each.place), each.subject) for each in op.decisions]


def test_the_samples_operator_and_its_header_need_no_person(read: Import) -> None:
    [op] = read(reg_op=ADD_CUSTOM, aclnn=ADD_CUSTOM_HEADER)
    assert op.decisions == []
    assert op.schema == "add_custom(Tensor x, Tensor y) -> Tensor"
    assert op.tensors == {
        "x": {"shape": "*x_shape", "dtype": "float16 float32 int32"},
        "y": {"dtype": "=x"},
    }
    assert op.outputs == {"z": {"shape": "*x_shape", "dtype": "=x"}}
    assert op.launch == "aclnnAddCustom(x, y, z)"
    assert op.graph == "AddCustom(x=x, y=y) -> z"


def test_without_a_header_the_order_of_the_kernel_is_a_decision(read: Import) -> None:
    [op] = read(reg_op=ADD_CUSTOM)
    assert subjects(op) == [("reg_op0:17", Subject.KERNEL)]
    assert op.launch == "aclnnAddCustom(x, y, z)"


def test_the_order_is_that_of_the_header(read: Import) -> None:
    body = tensor('Input("first_x")', "FLOAT") + tensor('Input("mask")', "BOOL", "OPTIONAL")
    body += tensor('Output("first_x")', "FLOAT") + 'this->Attr("k").AttrType(REQUIRED).Int();'
    header = (
        "aclnnStatus aclnnMixGetWorkspaceSize(aclTensor *firstXRef, int64_t k,"
        f" const aclTensor *maskOptional, {ENDS}"
    )
    [op] = read(reg_op=op_def(body), aclnn=header)
    assert op.decisions == []
    assert op.schema == "mix(Tensor(a!) first_x, Tensor? mask=None, *, int k) -> ()"
    assert op.launch == "aclnnMix(first_x, k, mask)"
    assert op.graph == "Mix(first_x=first_x, mask=mask, k=k) -> first_x"


def test_a_name_that_ends_as_a_suffix_does_is_found(read: Import) -> None:
    body = "".join(tensor(f'Input("{name}")', "FLOAT") for name in ("scale", "y"))
    body += "".join(tensor(f'Output("{name}")', "FLOAT") for name in ("scale_out", "z"))
    header = (
        "aclnnStatus aclnnMixGetWorkspaceSize(const aclTensor *yOptional, const aclTensor *scale,"
        f" const aclTensor *zOutOptional, const aclTensor *scaleOutOut, {ENDS}"
    )
    [op] = read(reg_op=op_def(body), aclnn=header)
    assert op.launch == "aclnnMix(y, scale, z, scale_out)"


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ("const aclTensor *x, int64_t k, ", "the header has no parameter for z"),
        ("const aclTensor *x, int64_t k, int8_t m, aclTensor *out, ", "parameter 3, `int8_t m`"),
        ("const aclTensor *x, double k, aclTensor *out, ", "is k, for which a launch passes ano"),
        ("const aclTensor *x, int64_t k, aclTensor *z, aclTensor *out, ", "as another parameter"),
    ],
)
def test_a_header_that_does_not_fit_is_a_decision_at_its_line(
    read: Import, parameters: str, problem: str
) -> None:
    body = tensor('Input("x")', "FLOAT") + 'this->Attr("k").AttrType(REQUIRED).Int();'
    body += tensor('Output("z")', "FLOAT")
    header = f"\naclnnStatus aclnnMixGetWorkspaceSize({parameters}{ENDS}"
    [op] = read(reg_op=op_def(body), aclnn=header)
    found = [each for each in op.decisions if each.subject is Subject.KERNEL]
    assert str(found[0].place) == "aclnn0:2"
    assert problem in found[0].text


def test_defaults_are_literals_or_constants_of_the_file(read: Import) -> None:
    attributes = {
        "a": "Int(-1)",
        "b": "Float(1e-6f)",
        "c": "Bool(false)",
        "d": 'String("BSND")',
        "e": "ListInt({1, 2})",
        "f": "Float(LIMIT)",
    }
    body = "".join(
        f'this->Attr("{name}").AttrType(OPTIONAL).{value};' for name, value in attributes.items()
    )
    text = f"constexpr float LIMIT = 7.0f;\n{op_def(body)}"
    [op] = read(reg_op=text)
    assert op.schema == (
        "mix(*, int a=-1, float b=1e-6, bool c=False, str d='BSND', int[] e=[1, 2], float f=7.0)"
        " -> ()"
    )


def test_dtypes_of_one_column_belong_together(read: Import) -> None:
    body = tensor('Input("x")', "FLOAT16 BF16 BF16") + tensor('Input("w")', "FLOAT16 FLOAT BF16")
    body += tensor('Input("v")', "FLOAT16 BF16 BF16") + tensor('Output("y")', "INT8 INT8 INT8")
    [op] = read(reg_op=op_def(body))
    assert op.tensors["w"]["dtype"] == "float16 float32 bfloat16"
    assert op.tensors["v"]["dtype"] == "=x"
    assert op.outputs["y"]["dtype"] == "int8"
    [rule] = op.rules
    assert rule["check"] == (
        "(x.dtype == float16 and w.dtype == float16) or"
        " (x.dtype == bfloat16 and w.dtype == float32) or"
        " (x.dtype == bfloat16 and w.dtype == bfloat16)"
    )


def test_dtypes_of_an_optional_input_belong_to_those_of_the_others(read: Import) -> None:
    body = tensor('Input("x")', "FLOAT16 BF16") + tensor('Input("m")', "BOOL INT8", "OPTIONAL")
    [op] = read(reg_op=op_def(body))
    [rule] = op.rules
    assert (rule["argument"], rule["check"]) == (
        "m",
        "(x.dtype == float16 and m.dtype == bool) or (x.dtype == bfloat16 and m.dtype == int8)",
    )


@pytest.mark.parametrize(
    "text",
    [
        op_def('this->Input("x").DataType(dtypes);'),
        op_def('this->Input("x").ParamType(REQUIRED);'),
        "REG_OP(A).INPUT(x, TensorType::NumberType()).OP_END_FACTORY_REG(A)",
        'REG_OP(A).INPUT(x, "T").OP_END_FACTORY_REG(A)',
    ],
)
def test_a_set_of_dtypes_that_is_not_understood_is_a_decision(read: Import, text: str) -> None:
    [op] = read(reg_op=text)
    assert Subject.DTYPE in [each for _, each in subjects(op)]


def test_any_dtype_is_no_limit(read: Import) -> None:
    [op] = read(reg_op="REG_OP(A).INPUT(x, TensorType::ALL()).OP_END_FACTORY_REG(A)")
    assert op.tensors == {"x": {}}
    assert [each for _, each in subjects(op)] == [Subject.KERNEL]


def test_a_list_of_dtypes_may_be_a_constant_of_the_file(read: Import) -> None:
    constant = "static const std::vector<ge::DataType> dtypes = {ge::DT_INT8, ge::DT_BOOL};\n"
    [op] = read(reg_op=constant + op_def('this->Input("x").DataType(dtypes);'))
    assert op.tensors["x"]["dtype"] == "int8 bool"


def test_dtypes_that_ops_toml_lacks_are_left_out_and_listed(read: Import) -> None:
    body = tensor('Input("x")', "FLOAT16 INT4") + tensor('Output("y")', "FLOAT INT8")
    [op] = read(reg_op=op_def(body))
    assert op.tensors["x"]["dtype"] == "float16"
    assert op.outputs["y"]["dtype"] == "float32"
    [left_out] = [each for each in op.decisions if each.subject is Subject.NARROWER]
    assert left_out.text == "x: ops.toml has no dtype for DT_INT4; left out"


def test_an_output_whose_dtype_no_input_says_is_a_decision(read: Import) -> None:
    body = tensor('Input("x")', "FLOAT16 FLOAT16") + tensor('Output("y")', "INT8 FLOAT16")
    [op] = read(reg_op=op_def(body))
    assert ("reg_op0:2", Subject.DTYPE) in subjects(op)


@pytest.mark.parametrize(
    "body",
    [
        "*y = *x; y->SetDim(0, 1); return GRAPH_SUCCESS;",
        "*y = *unknown; return GRAPH_SUCCESS;",
        "if (x->GetDimNum() > 2) { return GRAPH_FAILED; } *y = *x; return GRAPH_SUCCESS;",
    ],
)
def test_a_shape_function_that_does_more_than_copy_is_a_decision(read: Import, body: str) -> None:
    shapes = "auto x = context->GetInputShape(0); auto y = context->GetOutputShape(0);"
    function = f"graphStatus Infer(gert::InferShapeContext *context) {{ {shapes} {body} }}\n"
    inside = tensor('Input("x")', "FLOAT") + tensor('Output("y")', "FLOAT")
    [op] = read(reg_op=f"{function}{op_def(f'{inside}this->SetInferShape(Infer);')}")
    assert Subject.SHAPE in [each for _, each in subjects(op)]
    assert op.outputs["y"]["shape"] == "?"


def test_a_shape_function_may_stand_in_another_file_and_use_its_constants(read: Import) -> None:
    inside = tensor('Input("x")', "FLOAT") + tensor('Input("w")', "INT8")
    inside += tensor('Output("y")', "FLOAT")
    function = """
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
    [op] = read(reg_op=[op_def(inside), function])
    assert op.outputs["y"]["shape"] == "*w_shape"
    assert [each for _, each in subjects(op)] == [Subject.KERNEL]


def test_a_shape_that_follows_an_input_that_may_be_missing_is_a_decision(read: Import) -> None:
    inside = tensor('Input("m")', "FLOAT", "OPTIONAL") + tensor('Input("x")', "FLOAT")
    function = (
        "graphStatus Infer(InferShapeContext* context) { auto y = context->GetOutputShape(0);"
        " auto x = context->GetInputShape(1); *y = *x; return GRAPH_SUCCESS; }"
    )
    inside += tensor('Output("y")', "FLOAT") + "this->SetInferShape(Infer);"
    [op] = read(reg_op=f"{function} {op_def(inside)}")
    assert Subject.SHAPE in [each for _, each in subjects(op)]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (
            'this->Input("v").ParamType(REQUIRED).ValueDepend(OPTIONAL);',
            "v: .ValueDepend(OPTIONAL)",
        ),
        ('this->MC2().HcclGroup("group");', 'this->MC2().HcclGroup("group")'),
        ("for (auto each : all) { Add(each); }", "for (auto each : all)"),
        (
            'this->Attr("a").AttrType(OPTIONAL).Int(UINT64_MAX);',
            "UINT64_MAX, which no schema can have",
        ),
        (
            'this->Attr("a").AttrType(OPTIONAL).Int(Limit());',
            "Limit(), which no schema can have",
        ),
        ('this->Attr("a").AttrType(OPTIONAL).Int();', "is not REQUIRED, and has no default"),
        (tensor('Output("o")', "FLOAT", "DYNAMIC"), "output o is DYNAMIC"),
    ],
)
def test_a_statement_that_is_not_understood_is_a_decision(
    read: Import, statement: str, problem: str
) -> None:
    [op] = read(reg_op=op_def(f"\n{statement}"))
    assert any(problem in each.text and each.place.line == 2 for each in op.decisions)
    assert not op.is_complete


def test_lists_of_one_soc_are_left_out_and_listed(read: Import) -> None:
    body = tensor('Input("x")', "FLOAT") + "OpAICoreConfig soc;\n"
    body += 'soc.Input("x").DataType({ge::DT_INT8});\nsoc.DynamicRankSupportFlag(true);'
    [op] = read(reg_op=op_def(body))
    assert [each for _, each in subjects(op)] == [Subject.NARROWER, Subject.KERNEL]
    assert op.tensors["x"]["dtype"] == "float32"


PROTOTYPE = """
REG_OP(Fold)
    .INPUT(x, "T")
    .OPTIONAL_INPUT(mask, TensorType({DT_BOOL}))  // .INPUT(comment, "T")
    .OUTPUT(y, "T")
    .REQUIRED_ATTR(axes, ListInt)
    .ATTR(mode, String, "sum")
    .DATATYPE(T, TensorType({DT_FLOAT16, DT_FLOAT}))
    .OP_END_FACTORY_REG(Fold)
"""


def test_a_prototype_gives_inputs_attributes_and_the_node(read: Import) -> None:
    header = (
        "aclnnStatus aclnnFoldGetWorkspaceSize(const aclTensor *x, const aclTensor *maskOptional,"
        f" const aclIntArray *axes, char *modeOptional, const aclTensor *out, {ENDS}"
    )
    [op] = read(reg_op=PROTOTYPE, aclnn=header)
    assert op.schema == "fold(Tensor x, Tensor? mask=None, *, int[] axes, str mode='sum') -> Tensor"
    assert op.tensors == {"x": {"dtype": "float16 float32"}, "mask": {"dtype": "bool"}}
    assert op.outputs["y"] == {"shape": "?", "dtype": "=x"}
    assert op.launch == "aclnnFold(x, mask, axes, mode, y)"
    assert op.graph == "Fold(x=x, mask=mask, axes=axes, mode=mode) -> y"
    assert subjects(op) == [("reg_op0:5", Subject.SHAPE)]


def test_a_list_of_tensors_keeps_its_kernel_and_its_node(read: Import) -> None:
    text = (
        "REG_OP(Sink).DYNAMIC_INPUT(xs, TensorType({DT_FLOAT})).INPUT(y, TensorType({DT_FLOAT}))"
        ".OUTPUT(y, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(Sink)"
    )
    header = (
        "aclnnStatus aclnnSinkGetWorkspaceSize(const aclTensorList *xs, aclTensor *yRef, " + ENDS
    )
    [op] = read(reg_op=text, aclnn=header)
    assert op.schema == "sink(Tensor[] xs, Tensor(a!) y) -> ()"
    assert (op.is_complete, op.graph) == (True, "Sink(xs=xs, y=y) -> y")
    assert subjects(op) == []


@pytest.mark.parametrize(
    "text",
    ["REG_OP(A).INPUT(x", "REG_OP(A).INPUT(x, T) OUTPUT", "REG_OP(A).ODD(1).OP_END_FACTORY_REG(A)"],
)
def test_a_prototype_that_is_not_understood_is_a_decision(read: Import, text: str) -> None:
    [op] = read(reg_op=text)
    assert not op.is_complete


def test_the_class_says_more_than_the_prototype_and_must_agree_with_it(read: Import) -> None:
    text = "REG_OP(AddCustom).INPUT(x1, TensorType({DT_FLOAT})).OP_END_FACTORY_REG(AddCustom)"
    [op] = read(reg_op=[ADD_CUSTOM, text], aclnn=ADD_CUSTOM_HEADER)
    assert [each.text for each in op.decisions] == [
        "REG_OP has the inputs x1, the class x, y",
        "REG_OP has the outputs , the class z",
    ]


def test_a_header_alone_gives_everything_but_shapes_and_dtypes(read: Import) -> None:
    [op] = read(
        aclnn="/* this file was generated automatically */ aclnnStatus aclnnFoldGetWorkspaceSize("
        "aclTensor *stateRef, const aclTensor *maskOptional, const aclTensorList *xs,"
        f" const aclFloatArray *scales, bool flag, char *mode, const aclTensor *yOut, {ENDS}"
    )
    assert op.schema == (
        "fold(Tensor(a!) stateRef, Tensor? maskOptional, Tensor[] xs, float[] scales, bool flag,"
        " str mode) -> Tensor"
    )
    assert op.launch == "aclnnFold(stateRef, maskOptional, xs, scales, flag, mode, yOut)"
    assert subjects(op) == [("aclnn0:1", Subject.SHAPE)]


def test_a_hand_written_header_alone_does_not_say_what_is_written(read: Import) -> None:
    [op] = read(aclnn=f"aclnnStatus aclnnFoldGetWorkspaceSize(const aclTensor *x, {ENDS}")
    assert subjects(op) == [("aclnn0:1", Subject.SCHEMA)]


@pytest.mark.parametrize("type_", ["const aclScalar *", "float", "void *", "const aclTensor **"])
def test_a_type_that_no_launch_passes_is_a_decision(read: Import, type_: str) -> None:
    function = f"aclnnStatus aclnnAGetWorkspaceSize({type_} a, {ENDS}"
    [op] = read(aclnn=f"// this file was generated automatically\n{function}")
    assert ("aclnn0:2", Subject.SCHEMA) in subjects(op)


def test_a_call_of_op_plugin_is_compared_with_the_header(read: Import) -> None:
    yaml = """\
custom:
- func: mix_(Tensor(a!) x, int k, float r) -> Tensor(a!)
  op_api: all_version
  gen_opapi:
    new_params: {t: '"TND"'}
    exec: aclnnMix, x, t, k, r
"""
    right = (
        f"aclnnStatus aclnnMixGetWorkspaceSize(aclTensor *x, char *t, int8_t k, double r, {ENDS}"
    )
    [op] = read(op_plugin=yaml, aclnn=right)
    assert op.decisions == []
    for wrong, problem in (
        (right.replace("int8_t k, double r", "double r, int8_t k"), "`double r`, gets k"),
        (right.replace("char *t, ", ""), "the header has 3 arguments, the call 4"),
    ):
        [op] = read(op_plugin=yaml, aclnn=wrong)
        assert problem in op.decisions[0].text
        assert op.decisions[0].subject is Subject.KERNEL


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"aclnn": "int x;"}, "aclnn0 declares no kernel; --aclnn takes a header with"),
        ({"reg_op": "int x;"}, "reg_op0 has no operator; --reg-op takes files with"),
    ],
)
def test_nothing_but_files_that_say_nothing_is_an_error(
    read: Import, texts: dict[str, str], message: str
) -> None:
    with pytest.raises(ImportingError, match=message):
        read(**texts)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"reg_op": [ADD_CUSTOM, ADD_CUSTOM]}, "AddCustom stands at reg_op1:17 too; give one"),
        (
            {
                "reg_op": ADD_CUSTOM,
                "aclnn": [ADD_CUSTOM_HEADER, ADD_CUSTOM_HEADER.replace("*y", "*k")],
            },
            "aclnnAddCustom has other parameters than at aclnn0:4; give the header",
        ),
    ],
)
def test_what_files_say_twice_and_differently_is_a_decision(
    read: Import, texts: dict[str, str], problem: str
) -> None:
    [op] = read(**texts)
    assert any(each.text.startswith(problem) for each in op.decisions)


def test_unsuitable_files_are_skipped_and_listed(tmp_path: Path) -> None:
    texts = {
        "add_custom.cpp": ADD_CUSTOM,
        "aclnn_add_custom.h": ADD_CUSTOM_HEADER,
        "tiling.cpp": "int x;",
        "aclnn_utils.h": "int x;",
        "list.yaml": "a: b",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "binary.cpp").write_bytes(b"\xff\xfe")
    paths = {name: tmp_path / name for name in (*texts, "binary.cpp", "missing.cpp")}
    found = read_files.read(
        Sources(
            aclnn=(paths["aclnn_utils.h"], paths["aclnn_add_custom.h"]),
            reg_op=tuple(path for name, path in paths.items() if path.suffix == ".cpp"),
            op_plugin=(paths["list.yaml"],),
        )
    )
    assert [op.is_complete for op in found.ops] == [True]
    assert [
        [name for name in paths if name in reason and not name.startswith("aclnn_add")]
        for reason in found.skipped
    ] == [["aclnn_utils.h"], ["tiling.cpp"], ["binary.cpp"], ["missing.cpp"], ["list.yaml"]]


@pytest.mark.parametrize(
    ("value", "read_as"),
    [
        ("Int(INT64_MAX)", "int a=9223372036854775807"),
        ("Int(-INT64_MAX)", "int a=-9223372036854775807"),
        ("Int(INT64_MIN)", "int a=-9223372036854775808"),
        ("Int(INT32_MAX)", "int a=2147483647"),
        ("Int(UINT8_MAX)", "int a=255"),
        ("Int(std::numeric_limits<int64_t>::max())", "int a=9223372036854775807"),
        ("Int(std::numeric_limits<std::int16_t>::lowest())", "int a=-32768"),
        ("Int(numeric_limits < uint32_t > :: min ( ))", "int a=0"),
        ("Int(std::numeric_limits<int32_t>::epsilon())", "int a=0"),
        ("Float(FLT_MAX)", "float a=3.4028234663852886e+38"),
        ("Float(-FLT_MAX)", "float a=-3.4028234663852886e+38"),
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
def test_a_name_of_a_limit_or_a_dtype_is_the_number_that_it_stands_for(
    read: Import, value: str, read_as: str
) -> None:
    constant = "constexpr int64_t LARGEST = INT64_MAX;\n"
    [op] = read(reg_op=constant + op_def(f'this->Attr("a").AttrType(OPTIONAL).{value};'))
    assert op.schema == f"mix(*, {read_as}) -> ()"
    assert Subject.SCHEMA not in [each for _, each in subjects(op)]


def test_an_operator_with_more_than_an_op_can_have_is_a_decision(read: Import) -> None:
    body = "".join(tensor(f'Input("x{i}")', "FLOAT") for i in range(65))
    [op] = read(reg_op=op_def(body))
    assert "65 inputs and attributes, 0 outputs: an op has at most 64" in op.decisions[0].text


def test_of_two_ops_with_one_name_only_the_first_is_complete(read: Import) -> None:
    yaml = "custom:\n" + "".join(
        f"- func: {name}(Tensor(a!) x) -> ()\n  op_api: all_version\n"
        "  gen_opapi: {exec: aclnnA}\n"
        for name in ("a.b", "a_b")
    )
    first, second = read(op_plugin=yaml)
    assert (first.is_complete, second.is_complete) == (True, False)
    assert "a.b at op_plugin0:2 has the same name" in second.decisions[0].text


@pytest.mark.parametrize("name", ["missing", "folder", "bytes", "large"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
    elif name == "bytes":
        path.write_bytes(b"\xff\xfe")
    elif name == "large":
        with path.open("wb") as file:
            file.truncate(1 << 33)
    with pytest.raises(ImportingError, match=f"cannot read .*{name}: "):
        read_files.read(Sources(reg_op=(path,)))


def test_dtypes_of_cann_and_of_the_cpp_header_are_those_of_the_contract() -> None:
    assert {*cann_dtypes._DTYPES.values()} == {*DTYPES}
    header = (core_include() / "custom_pypto" / "dtype.h").read_text(encoding="utf-8")
    named = re.findall(r"^CUSTOM_PYPTO_DTYPE_OF\(\w+, (\w+)\)", header, re.MULTILINE)
    # No C++ type has this one's elements.
    assert {*named, "Float8_e4m3fn"} == {*DTYPES.values()}
