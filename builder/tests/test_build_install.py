"""Real pip, with and without build isolation, on core and one plugin."""

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from build_project import tiny_project
from custom_pypto_build.ninja import find_ninja
from custom_pypto_contract import manifest
from programs import run_python
from scratch import create, lend

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[2]
ALONE = ("--no-deps", "--no-build-isolation")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of the sources of contract, builder and core, for pip to build in."""
    folder = tmp_path_factory.mktemp("sources")
    ignored = shutil.ignore_patterns("build", "tests", "*.egg-info", "__pycache__")
    for name in ("contract", "builder", "core"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored)
    return folder


@pytest.fixture(scope="module")
def wheels(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels of contract and builder."""
    folder = tmp_path_factory.mktemp("wheels")
    run_pip("wheel", *ALONE, "--no-index", "-w", folder, sources / "contract", sources / "builder")
    return folder


def run_pip(*arguments: str | Path, **variables: str) -> None:
    # pip inverts the third: most of what it installs is never imported.
    env = {"PYTHONPATH": "", "CUSTOM_PYPTO_TORCH_DIR": "", "PIP_NO_COMPILE": "0"}
    env |= {"CUSTOM_PYPTO_BUILD_CHECK": "0", **variables}
    env["PATH"] = os.pathsep.join([str(Path(find_ninja()).parent), os.environ["PATH"]])
    run_python("-m", "pip", *arguments, env=env)


@pytest.mark.parametrize("is_editable", [True, False])
def test_an_isolated_build_finds_the_core_and_the_torch_that_are_installed(
    tmp_path: Path, sources: Path, wheels: Path, is_editable: bool
) -> None:
    plugin = tiny_project(tmp_path / "plugin")
    plugin.write(
        "csrc/headers.cpp",
        "#include <custom_pypto/abi.h>\n#include <torch/headeronly/version.h>\n"
        "static_assert(CUSTOM_PYPTO_ABI_MAJOR + TORCH_VERSION_MAJOR > 0);\n",
    )
    # It has torch and setuptools, and finds wheels of contract and builder as on an index.
    scratch = create(tmp_path / "venv", lend(tmp_path / "lent"))
    pip = partial(run_pip, "--python", scratch.python, PIP_FIND_LINKS=str(wheels))
    pip("install", *ALONE, "--no-index", "custom-pypto-contract")
    if is_editable:
        pip("install", *ALONE, "--editable", sources / "core")
        # That core imports it in an environment without the builder.
        with pytest.raises(AssertionError, match="but its library does not register it"):
            pip("install", "--no-deps", plugin.root, CUSTOM_PYPTO_BUILD_CHECK="1")
    else:
        pip("install", *ALONE, sources / "core")
        pip("install", "--no-deps", plugin.root / plugin.hook("build_sdist", plugin.root))
        file = scratch.site_packages / "custom_pypto_tiny" / manifest.FILE_NAME
        assert manifest.read(file).name == "tiny"
