"""custom-pypto import: files of operators and of functions as ops of ops.toml."""

import re
from pathlib import Path

import golden
import pytest
from custom_pypto_build.compiler import core_include
from custom_pypto_build.importing import cpp_values, ops_toml, read_files
from custom_pypto_build.importing import dtypes as cann_dtypes
from custom_pypto_build.importing.infer_shape import ShapeFunctions
from custom_pypto_build.importing.read_files import Sources
from custom_pypto_build.importing.source import Source
from custom_pypto_contract.dtypes import DTYPES

FOLDER = Path(__file__).with_name("imported")


def of_folder(*names: str) -> tuple[Path, ...]:
    return tuple(FOLDER / name for name in names)


SOURCES = {
    "functions": Sources(op_plugin=of_folder("functions.yaml")),
    "operators": Sources(
        aclnn=of_folder("aclnn_generated.txt", "aclnn_written.txt"),
        reg_op=of_folder("op_def.txt", "reg_op.txt"),
        op_plugin=of_folder("calls.yaml"),
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_ops_and_decisions_of_files(name: str) -> None:
    """Read the lines of a change of the golden file: it is what the command writes."""
    sources = SOURCES[name]
    ops = read_files.read(sources).ops
    decisions = [
        f"{each.subject.name} {ops_toml.decision_line(op, each)}"
        for op in ops
        for each in op.decisions
    ]
    written = "\n".join([ops_toml.text(ops, sources.names.values()), *decisions, ""])
    golden.compare(written, FOLDER / f"{name}.golden")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("0x7FFFFFFF", "2147483647"),
        ("-0x80000000L", "-2147483648"),
        ("1u << 31", "2147483648"),
        ("-(-5)", "5"),
        ("-FLT_MAX", "-3.4028234663852886e+38"),
        # What C++ computes in an unsigned type, or what its type cannot hold.
        *((text, None) for text in ("-0x80000000", "-0xFFFFFFFF", "-UINT_MAX", "-1u", "-INT_MIN")),
        *((text, None) for text in ("3u << 31", "-(1 << 31)", "1e400", "9223372036854775808")),
        # What C++ does not compile, or reads otherwise than Python.
        *((text, None) for text in ("--5", "- -5", "++7", "1_000", "0o17", "017", "1f", "1lL")),
        *((text, None) for text in ("1uu", "[0]", "x.y", "5(3)", "0b12", "1 2")),
    ],
)
def test_a_default_is_the_number_of_cpp_or_a_decision(text: str, read: str | None) -> None:
    assert cpp_values.read_default(text, {}) == read


def test_an_op_has_at_most_64_arguments(tmp_path: Path) -> None:
    inputs = "".join(f"  .INPUT(x{i}, TensorType::ALL())\n" for i in range(65))
    path = tmp_path / "many"
    path.write_text(f"REG_OP(Many)\n{inputs}  .OP_END_FACTORY_REG(Many)", encoding="utf-8")
    [op] = read_files.read(Sources(reg_op=(path,))).ops
    [decision] = op.decisions
    assert decision.text.startswith("65 inputs and attributes, 0 outputs: an op has at most 64")


def test_of_two_shape_functions_with_one_name_none_is_known() -> None:
    function = "F(InferShapeContext* context) { return GRAPH_SUCCESS; }\n"
    for count, copies in ((1, {}), (2, None)):
        source = Source(f"IMPL_OP(A).InferShape(F);\n{function * count}", "f")
        assert ShapeFunctions(source).of_operator("A") == copies


def test_dtypes_of_cann_and_of_the_cpp_header_are_those_of_the_contract() -> None:
    headers = core_include() / "custom_pypto"
    common = re.findall(
        r'\{ScalarType::(\w+), "(\w+)", (\d+)\}', (headers / "placement.h").read_text("utf-8")
    )
    assert DTYPES.items() <= {(name, in_cpp) for in_cpp, name, _ in common}
    numbers = {name: int(number) for _, name, number in common}
    for in_cann, name in cann_dtypes._DTYPES.items():
        assert cpp_values._DTYPES.get(in_cann, numbers["float32"]) == numbers[name]
    header = (headers / "dtype.h").read_text("utf-8")
    named = re.findall(r"^CUSTOM_PYPTO_DTYPE_OF\(\w+, (\w+)\)", header, re.MULTILINE)
    # No C++ type has this one's elements.
    assert {*named, "Float8_e4m3fn"} == {*DTYPES.values()}
