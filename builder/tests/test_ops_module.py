"""ops.py: the typed functions that a build makes of ops.toml, and where it puts them."""

import inspect
from pathlib import Path
from typing import Any

import golden
import pytest
from build_project import BuildFailedError, Project
from custom_pypto_build import ops_module
from custom_pypto_build.errors import BuildError
from custom_pypto_contract import ops_file
from custom_pypto_contract.contract import OpContract
from custom_pypto_contract.ops_file import OpsFile

CONTRACTS = Path(__file__).parents[2] / "contract" / "tests" / "contracts"
RESERVED = ops_file.read(CONTRACTS / "reserved_names.toml")


def read(*schemas: str) -> OpsFile:
    document = {schema.partition("(")[0]: {"schema": schema} for schema in schemas}
    return ops_file.read_document(document)


@pytest.fixture
def execute(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that executes the module of some ops; instead of one it gives its name."""
    monkeypatch.setattr(
        "custom_pypto_plugin.op_function", lambda op: lambda function: (op, function)
    )

    def run(file: OpsFile) -> dict[str, Any]:
        module: dict[str, Any] = {}
        exec(compile(ops_module.module_text("mine", file), "ops.py", "exec"), module)
        return module

    return run


def test_the_text_for_a_contract_that_says_everything() -> None:
    file = ops_file.read(CONTRACTS / "everything.toml")
    golden.compare(ops_module.module_text("mine", file), CONTRACTS / "everything_ops.txt")


@pytest.mark.parametrize("op", RESERVED.ops, ids=lambda op: op.name)
def test_names_may_be_any(op: OpContract, execute: Any) -> None:
    name, function = execute(RESERVED)[ops_module.function_name(op.name)]
    assert name == op.name
    assert list(inspect.signature(function).parameters) == [each.name for each in op.arguments]
    assert function.__doc__.startswith(op.schema.text)


def test_what_means_something_else_in_the_module_is_no_name(execute: Any) -> None:
    schemas = ["Tensor(Tensor x) -> Tensor", "lambda() -> ()", "list(int? op_function=3) -> ()"]
    module = execute(read(*schemas))
    assert module["__all__"] == ["Tensor_", "lambda_", "list_"]
    assert [module[name][0] for name in module["__all__"]] == ["Tensor", "lambda", "list"]


def test_signatures_are_those_of_the_schema(execute: Any) -> None:
    schema = "f(int[2] a=1, int[] b=[2, 3], float c=1, *, str? d=None, Device e='cpu') -> Tensor[]"
    _, function = execute(read(schema))["f"]
    assert str(inspect.signature(function)).replace('"', "'") == (
        "(a: 'int | Sequence[int]' = 1, b: 'Sequence[int]' = (2, 3), c: 'float' = 1, *,"
        " d: 'str | None' = None, e: 'torch.device | str' = 'cpu') -> 'list[Tensor]'"
    )


CONSTANT = {"constants": {"OP": 1}, "OP": {"schema": "OP() -> ()"}}
WRONG_ORDER = "ops.toml: an op cannot be a function of Python, "


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (ops_file.read_document(CONSTANT), "the constant 'OP' and the op 'OP' would both be"),
        (
            read("a.b() -> ()", "a_b() -> ()"),
            "the op 'a.b' and the op 'a_b' would both be 'a_b'; rename one",
        ),
        (read("f(int a=1, int[] b) -> ()"), WRONG_ORDER),
        (read("f(Tensor __debug__) -> ()"), WRONG_ORDER),
    ],
)
def test_what_python_cannot_write_is_refused(file: OpsFile, message: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=message):
        ops_module.write("mine", file, tmp_path)


@pytest.fixture
def project(project: Project) -> Project:
    project.configure("")
    return project


def test_a_build_replaces_the_functions_of_an_earlier_one(project: Project) -> None:
    project.hook("build_editable", project.root / "dist")
    written = project.root / "src/custom_pypto_tiny/ops.py"
    assert "def tiny_b(" in written.read_text(encoding="utf-8")
    project.write("ops.toml", '[other]\nschema = "other() -> ()"\n')
    assert b"def other(" in project.wheel().files["custom_pypto_tiny/ops.py"]
    project.hook("build_editable", project.root / "dist")
    assert "def tiny_b(" not in written.read_text(encoding="utf-8")


@pytest.mark.parametrize("hook", ["build_wheel", "build_editable"])
def test_a_module_of_the_author_is_not_overwritten(project: Project, hook: str) -> None:
    own = project.write("src/custom_pypto_tiny/ops.py", "x = 1\n")
    with pytest.raises(BuildFailedError, match=r"error: .*/ops.py is in the way: the build"):
        project.hook(hook, project.root / "dist")
    assert own.read_text() == "x = 1\n"
