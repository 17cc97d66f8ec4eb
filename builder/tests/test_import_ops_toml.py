"""custom-pypto import: the files that it writes are valid, whatever the sources contain."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from cpp_library import compile_command
from custom_pypto_build import ops_header
from custom_pypto_build.importing import ops_toml, read_files
from custom_pypto_build.importing.model import ImportedOp, ImportingError, Place, Subject
from custom_pypto_build.importing.ops_toml import Imported
from custom_pypto_build.importing.read_files import Sources
from custom_pypto_contract import ops_file
from programs import run_program
from test_import_operators import SOURCES, of_folder

PAGE = Path(__file__).parents[2] / "docs" / "import.md"

# The operator of Ascend's samples.
ADD_CUSTOM = Sources(of_folder("aclnn_add_custom.txt"), of_folder("add_custom.txt"))
BOTH = replace(ADD_CUSTOM, op_plugin=SOURCES["functions"].op_plugin)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def compiled_ops(folder: Path) -> list[str]:
    """Return the names of the ops in ops.toml; the kernels of these compile."""
    contract = ops_file.read(folder / "ops.toml")
    write(folder / "ops.h", ops_header.header_text(contract))
    command = compile_command("-fsyntax-only", f"-I{folder}", folder / "npu.cpp")
    assert run_program(*command).stderr == ""
    return [op.schema.name for op in contract.ops]


def test_what_is_written_is_a_valid_contract_whose_kernels_compile(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    ops_toml.write(read_files.read(BOTH), BOTH.names.values(), folder)
    assert {"shift_", "convert.dim", "twist.out", "add_custom"} < {*compiled_ops(folder)}


def test_without_its_marks_a_decided_op_is_a_plugin_whose_kernel_compiles(tmp_path: Path) -> None:
    op = ImportedOp("open", Place("f", 1), "open(Tensor(a!) x) -> ()", {"x": {}})
    op.launch = "aclnnOpen(x)"
    op.rules = [{"argument": "x", "check": "x.ndim == 2", "message": "be 2-D"}]
    op.decide(op.place, Subject.KEY, "what the sources do not say")
    ops_toml.write(Imported([op]), ["f"], tmp_path)
    assert (tmp_path / "pyproject.toml").is_file()
    for name, mark in (("ops.toml", r"^# "), ("npu.cpp", r"^  // ")):
        path = tmp_path / name
        write(path, re.sub(mark, "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    # Only the first line was no comment of a comment.
    first, _, rest = (tmp_path / "ops.toml").read_text(encoding="utf-8").partition("\n")
    write(tmp_path / "ops.toml", f"# {first}\n{rest}")
    assert compiled_ops(tmp_path) == ["open"]
    assert "ops::open::launch" in (tmp_path / "npu.cpp").read_text(encoding="utf-8")


def test_the_page_shows_what_is_written() -> None:
    [add_custom] = read_files.read(ADD_CUSTOM).ops
    _, _, written = ops_toml.text([add_custom], []).partition("\n[add_custom]\n")
    assert f"```toml\n[add_custom]\n{written}```\n" in PAGE.read_text(encoding="utf-8")


def test_decisions_are_listed_by_file_and_line(tmp_path: Path) -> None:
    sources = SOURCES["operators"]
    *_, decisions = ops_toml.write(read_files.read(sources), sources.names.values(), tmp_path)
    lines = [line.split(":") for line in decisions.read_text(encoding="utf-8").splitlines()]
    places = [(name, int(number)) for name, number, *_ in lines]
    assert {name for name, _ in places} == {*sources.names.values()}
    assert places == sorted(places)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    ops = read_files.read(BOTH)
    path = write(tmp_path / "npu.cpp", "mine")
    with pytest.raises(ImportingError, match=r"npu.cpp exists; name another folder by --output"):
        ops_toml.write(ops, BOTH.names.values(), tmp_path)
    assert path.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / "ops.toml").exists()


ODDITY = [
    "\x1b[2J",
    "\u202e",
    "\ud800",
    '"""',
    "\\",
    "a\nb\r\nc",
    "\x00\x7f",
    "]\n[evil]\n",
    "🙂",
    "." * 1000,
]


@pytest.mark.parametrize("text", ODDITY)
def test_any_text_of_a_source_leaves_the_file_valid(tmp_path: Path, text: str) -> None:
    whole = ImportedOp("whole", Place(text, 1), "whole(Tensor(a!) x) -> ()", {"x": {}})
    whole.launch = "aclnnWhole(x)"
    odd = ImportedOp("odd", Place(text, 2), f"odd(str x='{text}') -> ()", launch=f"aclnnA({text})")
    named = ImportedOp(text, Place("f", 3), f"{text}() -> ()", tensors={text: {text: text}})
    named.decide(Place("f", 3), Subject.KEY, text)
    ops = [ops_toml.check(op) for op in (whole, odd, named)]
    [path, *_] = ops_toml.write(Imported(ops), [text], tmp_path)
    written = path.read_text(encoding="utf-8")
    assert "\n[whole]\n" in written
    assert "\n[evil]" not in written
    assert all(line.isprintable() for line in written.split("\n"))
    assert ops_file.read(path).ops[0].schema.name == "whole"


@pytest.mark.parametrize(
    ("schema", "tensor", "launch", "problem"),
    [
        ("a(Tensor int8) -> Tensor", "int8", "", "[a]: schema: 'int8' is a dtype, and no argument"),
        ("a(Tensor(a!) x) -> ()", "x", "aclnnA(x, y)", "'y'"),
    ],
)
def test_a_contract_that_says_something_impossible_is_a_decision(
    schema: str, tensor: str, launch: str, problem: str
) -> None:
    op = ops_toml.check(ImportedOp("a", Place("f", 1), schema, {tensor: {}}, launch=launch))
    [decision] = op.decisions
    assert decision.subject is Subject.SCHEMA
    assert problem in decision.text
