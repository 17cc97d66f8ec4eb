"""Real pip, with and without build isolation, on core and one plugin."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from build_project import Project, tiny_project
from custom_pypto_build.ninja import find_ninja
from custom_pypto_contract import manifest
from scratch import Scratch, create, lend

REPOSITORY = Path(__file__).parents[2]
Pip = Callable[..., None]
ALONE = ("--no-deps", "--no-build-isolation")


class PipFailedError(Exception):
    """pip ended with an error; the text is what it wrote."""


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with torch and setuptools, and nothing of ours."""
    return lend(tmp_path_factory.mktemp("lent") / "site-packages")


@pytest.fixture
def scratch(tmp_path: Path, lent: Path) -> Scratch:
    """A venv in which torch and setuptools are installed."""
    return create(tmp_path / "venv", lent)


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


@pytest.fixture(scope="module")
def core(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of core, in a folder of its own: pip must not find it as on an index."""
    folder = tmp_path_factory.mktemp("core")
    run_pip("wheel", *ALONE, "--no-index", "--wheel-dir", folder, sources / "core")
    [wheel] = folder.iterdir()
    return wheel


@pytest.fixture
def pip(scratch: Scratch, wheels: Path) -> Pip:
    """pip on the scratch environment; it finds wheels of contract and builder, as on an index."""
    return partial(run_pip, "--python", scratch.python, PIP_FIND_LINKS=str(wheels))


def run_pip(*arguments: str | Path, **variables: str) -> None:
    removed = ("PYTHONPATH", "CUSTOM_PYPTO_TORCH_DIR")
    env = {k: v for k, v in os.environ.items() if k not in removed}
    # pip inverts the first: most of what it installs is never imported.
    env |= {"PIP_NO_COMPILE": "0", "CUSTOM_PYPTO_BUILD_CHECK": "0", **variables}
    env["PATH"] = os.pathsep.join([str(Path(find_ninja()).parent), env["PATH"]])
    command = [sys.executable, "-m", "pip", *arguments]
    process = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        raise PipFailedError(process.stdout + process.stderr)


@pytest.fixture
def plugin(tmp_path: Path) -> Project:
    """A plugin that needs core's headers, and torch's."""
    project = tiny_project(tmp_path / "plugin")
    project.write(
        "csrc/headers.cpp",
        "#include <custom_pypto/abi.h>\n#include <torch/headeronly/version.h>\n"
        "static_assert(CUSTOM_PYPTO_ABI_MAJOR + TORCH_VERSION_MAJOR > 0);\n",
    )
    return project


@pytest.mark.parametrize("is_editable", [True, False])
def test_an_isolated_build_finds_the_core_and_the_torch_that_are_installed(
    scratch: Scratch, pip: Pip, sources: Path, core: Path, plugin: Project, is_editable: bool
) -> None:
    pip("install", *ALONE, "--no-index", "custom-pypto-contract")
    if is_editable:
        pip("install", *ALONE, "--editable", sources / "core")
        # That core imports it in an environment without the builder.
        with pytest.raises(PipFailedError, match="but its library does not register it"):
            pip("install", "--no-deps", plugin.root, CUSTOM_PYPTO_BUILD_CHECK="1")
    else:
        pip("install", *ALONE, core)
        pip("install", "--no-deps", plugin.root / plugin.hook("build_sdist", plugin.root))
        file = scratch.site_packages / "custom_pypto_tiny" / manifest.FILE_NAME
        assert manifest.read(file).name == "tiny"
