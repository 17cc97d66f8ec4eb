"""What ``custom-pypto new`` writes builds, installs and passes the conformance suite."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch import FEW_CALLS, Scratch

# Scalars, lists, strings, None, several results, an overload, words of C++.
MANY = """
many.over(Tensor end, Tensor T, Tensor register, *, Tensor a, Tensor? bias=None,
          Tensor[] list, ScalarType dtype, bool? flag=None, str layout='"') -> (Tensor, Tensor)
"""
NPU = """
npu_acme(Tensor query, Tensor grad, int[2] shape=1, float eps=1e-6, *, Tensor weight,
         bool causal=False, str layout='BSND') -> Tensor
"""
PYTHON = """
python_acme(Tensor x, Tensor wide, Tensor? bias=None, *, int[] sizes=[1], str kind='a')
  -> (Tensor, Tensor result)
"""
# A second op, with other results.
SECOND = "{}_second(Tensor x, bool flag=False) -> (Tensor, Tensor)"
PLUGINS = {
    "acme-many": ["--schema", MANY],
    "acme-npu": ["--schema", NPU, "--npu"],
    # An op with the plugin's name, as without --schema.
    "acme-isa": ["--schema", NPU.replace("npu_acme", "acme_isa"), "--isa", "--npu"],
    "acme-python": ["--schema", PYTHON, "--python"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sources of every plugin."""
    return tmp_path_factory.mktemp("new")


@pytest.fixture(scope="module")
def environment(folder: Path, new_environment: Callable[..., Scratch]) -> Scratch:
    """An environment with every plugin, written and built in it."""
    made = new_environment("custom_pypto_build", "custom_pypto_blocks", "custom_pypto_testing")
    for name, options in PLUGINS.items():
        second = SECOND.format(name.replace("-", "_"))
        made.custom_pypto("new", name, *options, "--schema", second, cwd=folder)
    for name in PLUGINS:
        # The tests load each plugin again; one is checked by its build, too.
        is_checked = {"CUSTOM_PYPTO_BUILD_CHECK": str(int(name == "acme-isa"))}
        made.install(made.build_wheel(folder / name, folder / "wheels", is_checked))
    return made


def test_they_pass_their_tests(environment: Scratch, folder: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    tests = [f"{name}/tests" for name in PLUGINS]
    environment.expect_passes("pytest", *options, *FEW_CALLS, *tests, cwd=folder)


def test_launches_are_registered(environment: Scratch) -> None:
    plugins = json.loads(environment.custom_pypto("list", "--json").stdout)["plugins"]
    keys = {op["name"]: op["dispatch_keys"] for plugin in plugins for op in plugin["ops"]}
    for op in ("npu_acme", "acme_npu_second", "acme_isa", "acme_isa_second"):
        assert "PrivateUse1" in keys[op]


def test_the_kernels_are_of_the_instruction_set(environment: Scratch) -> None:
    shown = environment.custom_pypto(
        "info", "acme_isa", environment={"CUSTOM_PYPTO_CPU_ISA": "portable"}
    )
    assert "CPU ISA       portable" in shown.stdout


def test_its_wheels_have_no_problem(environment: Scratch, folder: Path) -> None:
    for wheel in (folder / "wheels").iterdir():
        assert environment.custom_pypto("check", str(wheel)).returncode == 0
