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
# A second op, with the plugin's name, as without --schema.
SECOND = "{}(Tensor x, bool flag=False) -> (Tensor, Tensor)"
PLUGINS = {
    "acme-isa": ["--schema", MANY, "--isa"],
    "acme-npu": ["--schema", NPU, "--npu"],
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
        # The tests load each plugin again.
        unchecked = {"CUSTOM_PYPTO_BUILD_CHECK": "0"}
        made.build_wheel(folder / name, folder / "wheels", unchecked)
    made.install(*(folder / "wheels").iterdir())
    return made


@pytest.mark.slow
def test_they_pass_their_tests(environment: Scratch, folder: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    tests = [f"{name}/tests" for name in PLUGINS]
    environment.expect_passes("pytest", *options, *FEW_CALLS, *tests, cwd=folder)


def test_they_have_kernels_for_npus_and_instruction_sets(environment: Scratch) -> None:
    variables = {"CUSTOM_PYPTO_CPU_ISA": "portable"}
    shown = environment.custom_pypto("list", "--json", environment=variables).stdout
    plugins = {each["name"]: each for each in json.loads(shown)["plugins"]}
    for op in plugins["acme_npu"]["ops"]:
        assert "PrivateUse1" in op["dispatch_keys"]
    assert plugins["acme_isa"]["cpu_isa"] == "portable"


def test_its_wheels_have_no_problem(environment: Scratch, folder: Path) -> None:
    for wheel in (folder / "wheels").iterdir():
        assert environment.custom_pypto("check", str(wheel)).returncode == 0
