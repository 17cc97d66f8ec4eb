"""custom-pypto stubs: what mypy makes of calls of `torch.ops.custom_pypto`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import torch
from custom_pypto_cli import main, op_stubs
from custom_pypto_cli.commands import stubs
from custom_pypto_contract import ops_file

TORCH = Path(torch.__file__).parent
SCHEMAS = [
    "add(Tensor self, Tensor other, *, Tensor? bias=None, float alpha=1) -> Tensor",
    "many(Tensor[] xs, int[2] sizes=1, ScalarType? dtype=None, str mode='a') -> (Tensor, Tensor[])",
    "write(Tensor(a!) cache, *, Tensor(b!) out) -> ()",
    "pick(Tensor x) -> Tensor",
    "pick.int(int x) -> int",
    "pick.lambda(str x) -> str",
    "lambda(Tensor x) -> Tensor",
]
# A statement, and what mypy says of it: a revealed type or a part of an error; empty: nothing.
STATEMENTS = {
    "reveal_type(ops.add(x, x))": 'Revealed type is "torch._tensor.Tensor"',
    "ops.add(self=x, other=x, bias=None, alpha=2)": "",
    "ops.add(x, 3)": 'Argument 2 to "__call__" of "_Call__add" has incompatible type "int"',
    "ops.add(x)": 'Missing positional argument "other"',
    "ops.add(x, x, x)": "Too many positional arguments",
    "ops.add(x, x, beta=1)": 'Unexpected keyword argument "beta"',
    "ops.add.default(x, 3)": "has incompatible type",
    "reveal_type(ops.many([x], (1, 2), torch.int8, 'b'))": (
        'Revealed type is "tuple[torch._tensor.Tensor, list[torch._tensor.Tensor]]"'
    ),
    "ops.many([x], 2)": "",
    "ops.many(x)": "has incompatible type",
    "ops.many([x], dtype='int8')": "has incompatible type",
    "ops.write(x, out=x)": "",
    "ops.write(x, x)": "Too many positional arguments",
    "reveal_type(ops.pick(3))": 'Revealed type is "int"',
    "reveal_type(ops.pick(x))": 'Revealed type is "torch._tensor.Tensor"',
    "reveal_type(ops.pick.int(3))": 'Revealed type is "int"',
    "ops.pick.int(x)": "has incompatible type",
    "ops.pick(None)": "No overload variant",
    "ops.pik(x)": 'has no attribute "pik"; maybe "pick"?',
    "ops.add.overloads()": "",
    "reveal_type(torch.ops.aten.add)": "torch._ops.OpOverloadPacket",
    "reveal_type(torch.ones(2))": 'Revealed type is "torch._tensor.Tensor"',
}


def write(folder: Path, *schemas: str) -> Path:
    """Write the stubs of ops with these schemas into `folder`; return that with the ops."""
    document = {schema.partition("(")[0]: {"schema": schema} for schema in schemas}
    ops = ops_file.read_document(document).ops
    return op_stubs.write(folder / "torch-stubs", TORCH, "2.13.0", ops)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """What mypy says, by line."""
    folder = tmp_path_factory.mktemp("stubs")
    write(folder, *SCHEMAS)
    lines = ["import torch", "ops, x = torch.ops.custom_pypto, torch.ones(2)", *STATEMENTS]
    (folder / "calls.py").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", "calls.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    found: dict[int, str] = {}
    for line, text in re.findall(r"^calls.py:(\d+): (.*)$", done.stdout, re.MULTILINE):
        found[int(line)] = found.get(int(line), "") + text
    return found


@pytest.mark.parametrize("statement", STATEMENTS)
def test_mypy_knows_the_ops(said: dict[int, str], statement: str) -> None:
    line = 3 + list(STATEMENTS).index(statement)
    expected = STATEMENTS[statement]
    assert expected in said.get(line, "")
    assert bool(expected) == (line in said)


def test_the_stub_is_python_and_has_the_help(tmp_path: Path) -> None:
    text = write(tmp_path, *SCHEMAS).read_text(encoding="utf-8")
    compile(text, "_ops.pyi", "exec")
    assert f'"""{SCHEMAS[0]}' in text


def test_the_command_writes_and_removes_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "typings" / "torch-stubs"
    for _ in range(2):
        assert main(["stubs", str(package.parent)]) == 0
    assert (package / "py.typed").read_text() == "partial\n"
    # Beside a partial stub package, pyright finds it only there.
    assert (package / "_C" / "__init__.pyi").is_file()
    assert f" ops in {package / '_ops.pyi'}" in capsys.readouterr().out
    assert main(["stubs", "--remove", str(package.parent)]) == 0
    assert not package.exists()


@pytest.mark.parametrize("options", [[], ["--remove"]])
def test_what_somebody_else_wrote_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    other = tmp_path / "torch-stubs" / "_ops.pyi"
    other.parent.mkdir()
    other.write_text("ops: object\n")
    assert main(["stubs", *options, str(tmp_path)]) == 1
    assert "is not of this command, and was left as it is" in capsys.readouterr().err
    assert other.read_text() == "ops: object\n"


def test_a_torch_without_the_class_of_ops_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").touch()
    (tmp_path / "torch" / "_ops.py").write_text("ops = 1\n")
    origin = str(tmp_path / "torch" / "__init__.py")
    monkeypatch.setattr(stubs, "find_spec", lambda name: ModuleSpec(name, None, origin=origin))
    assert main(["stubs", str(tmp_path)]) == 1
    assert "has no class torch._ops._Ops; use a torch that" in capsys.readouterr().err
    assert not (tmp_path / "torch-stubs").exists()
