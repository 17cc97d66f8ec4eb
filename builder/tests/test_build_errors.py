"""Errors of builds: missing requirements, and code that does not compile."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from build_project import (
    OPS,
    PER_FILE,
    PLUGIN_CPP,
    SOURCES,
    BuildFailedError,
    Project,
    environment,
    tiny_project,
)
from custom_pypto_build.compiler import core_include
from custom_pypto_contract import platforms

MACHINE = platforms.machine(platforms.platform_tag())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return tiny_project(tmp_path)


def failure(project: Project, **env: str) -> str:
    """Return the error of a wheel that cannot be built; it is never a Python traceback."""
    with pytest.raises(BuildFailedError) as caught:
        project.wheel(env)
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


def forged_torch(root: Path, version: str | None, *, header: bool = True) -> Path:
    folder = root / "torch"
    (folder / "include/torch/csrc/stable").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib/libtorch_cpu.so").touch()
    if version is not None:
        (folder / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\n")
    if header:
        (folder / "include/torch/csrc/stable/library.h").touch()
    return folder


def path_with(root: Path, *names: str) -> str:
    """A PATH on which only these programs are."""
    folder = root / "path"
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def test_torch_that_is_not_there(project: Project) -> None:
    message = failure(project, CUSTOM_PYPTO_TORCH_DIR="/nowhere/torch")
    assert "error: PyTorch's headers were not found; looked for\n  /nowhere/torch\n" in message
    assert "Install torch >= 2.10 in the environment" in message


def test_torch_that_is_too_old(project: Project, tmp_path: Path) -> None:
    folder = forged_torch(tmp_path, "2.9.1+cpu")
    message = failure(project, CUSTOM_PYPTO_TORCH_DIR=str(folder))
    assert f"error: torch 2.9 in {folder} is too old" in message
    assert "install torch >= 2.10 and build again" in message


def test_versions_are_compared_as_numbers(project: Project, tmp_path: Path) -> None:
    folder = forged_torch(tmp_path, "2.100.0a0+git")
    project.wheel({"CUSTOM_PYPTO_TORCH_DIR": str(folder)})


def test_torch_without_its_headers(project: Project, tmp_path: Path) -> None:
    folder = forged_torch(tmp_path, "2.13.0", header=False)
    message = failure(project, CUSTOM_PYPTO_TORCH_DIR=str(folder))
    assert f"error: torch in {folder} is incomplete: " in message
    assert "stable/library.h is missing" in message


def test_a_folder_that_is_no_torch(project: Project, tmp_path: Path) -> None:
    folder = forged_torch(tmp_path, None)
    message = failure(project, CUSTOM_PYPTO_TORCH_DIR=str(folder))
    assert f"error: {folder} holds no installed torch: neither version.py nor" in message


def test_the_headers_give_the_version_where_python_does_not(
    project: Project, tmp_path: Path
) -> None:
    folder = forged_torch(tmp_path, None)
    header = folder / "include/torch/headeronly/version.h"
    header.parent.mkdir()
    header.write_text("#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 8\n")
    assert "torch 2.8 in" in failure(project, CUSTOM_PYPTO_TORCH_DIR=str(folder))


def test_a_compiler_that_is_not_there(project: Project) -> None:
    message = failure(project, CXX="no-such-compiler -m64")
    assert "error: the C++ compiler 'no-such-compiler', which the variable CXX asks for" in message


def test_no_compiler_at_all(project: Project, tmp_path: Path) -> None:
    message = failure(project, PATH=path_with(tmp_path, "ninja"))
    assert "error: no C++ compiler was found on PATH (looked for g++, c++, clang++)" in message


def test_flags_that_a_shell_could_not_split(project: Project) -> None:
    message = failure(project, CXXFLAGS="-DA='1")
    assert 'error: CXXFLAGS="-DA=\'1": No closing quotation' in message


def test_ninja_that_is_not_there(project: Project, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sysconfig\nsysconfig.get_path = lambda *_, get=sysconfig.get_path, **__:"
        " '/nowhere' if _ == ('scripts',) else get(*_, **__)\n"
    )
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    message = failure(project, PATH=path_with(tmp_path, "g++"), PYTHONPATH=path)
    assert "error: ninja was not found; install it with `pip install ninja`" in message


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "1.5"])
def test_a_number_of_jobs_that_is_none(project: Project, jobs: str) -> None:
    assert f"error: MAX_JOBS must be a positive number, got '{jobs}'" in failure(
        project, MAX_JOBS=jobs
    )


def test_a_compile_error_shows_what_the_compiler_says(project: Project) -> None:
    project.write("csrc/wrong.cpp", "int f() { return missing; }\n")
    message = failure(project)
    assert re.search(r"csrc/wrong\.cpp:1:\d+: error: .*missing", message)
    assert (
        "error: compiling or linking the plugin failed; the compiler's output is above" in message
    )


def test_an_undefined_symbol_fails_the_build(project: Project) -> None:
    project.write("csrc/wrong.cpp", "int missing();\nint f() { return missing(); }\n")
    message = failure(project)
    assert "undefined reference to `missing()'" in message
    assert "error: compiling or linking the plugin failed" in message


def test_a_plugin_without_a_contract(project: Project) -> None:
    (project.root / "ops.toml").unlink()
    message = failure(project)
    assert "ops.toml is missing; it describes the plugin's ops" in message


def test_a_contract_that_cannot_be_meant(project: Project) -> None:
    project.write("ops.toml", OPS.replace("int k=3", "itn k=3"))
    message = failure(project)
    assert "error: ops.toml: [tiny]: schema: a 'itn' cannot cross torch's stable ABI" in message
    assert "did you mean 'int'?" in message


def test_two_ops_that_would_be_one_struct(project: Project) -> None:
    project.write("ops.toml", OPS + '\n[tiny_b]\nschema = "tiny_b(Tensor self) -> Tensor"\n')
    assert (
        "error: ops.toml: [tiny.b] and [tiny_b] would both be ops::tiny_b; call one of"
        " them otherwise" in failure(project)
    )


@pytest.mark.parametrize(("name", "flag"), [("INT_MAX", ""), ("ROWS", "-DROWS=3")])
def test_a_name_that_is_a_macro(project: Project, name: str, flag: str) -> None:
    project.write("ops.toml", OPS + f'\n[more]\nschema = "more(Tensor {name}) -> Tensor"\n')
    assert (
        f"error: ops.toml: [more] the argument {name!r} would be ops::more::Arguments::{name}, and"
        f" {name} is a macro of a header or a flag of the compiler; call it otherwise"
        in failure(project, CXXFLAGS=flag)
    )


def test_an_op_that_requires_itself(project: Project) -> None:
    project.configure(SOURCES + 'requires-ops = ["tiny"]\n')
    assert "error: the plugin's manifest would not be valid: 'requires_ops' names" in failure(
        project
    )


def test_a_wrong_key_is_named_when_the_metadata_is_built(project: Project) -> None:
    project.configure('source = ["csrc/*.cpp"]\n')
    (project.root / "metadata").mkdir()
    with pytest.raises(BuildFailedError, match="has no key 'source'"):
        project.hook("prepare_metadata_for_build_wheel", project.root / "metadata")


def test_an_entry_point_that_names_no_package(project: Project) -> None:
    text = (project.root / "pyproject.toml").read_text()
    project.write("pyproject.toml", text.replace('"custom_pypto_tiny"', '"custom_pypto_tinny"'))
    message = failure(project)
    assert "names the package 'custom_pypto_tinny', but the distribution's packages are" in message
    assert "['custom_pypto_tiny']; write src/custom_pypto_tinny/__init__.py or correct" in message


def test_a_setup_py(project: Project) -> None:
    project.write("setup.py", "")
    assert "error: setup.py would be ignored: custom_pypto_build builds a plugin from" in failure(
        project
    )


def test_no_source_for_this_machine(project: Project) -> None:
    other = "s390x" if MACHINE != "s390x" else "x86_64"
    project.configure(f'{SOURCES}{PER_FILE}files = ["csrc/*.cpp"]\nmachines = ["{other}"]\n')
    assert f"error: pyproject.toml: tool.custom-pypto.per-file leaves no source for {MACHINE}" in (
        failure(project)
    )


def test_a_compiler_for_another_machine(project: Project) -> None:
    other = "aarch64" if MACHINE != "aarch64" else "x86_64"
    message = failure(project, _PYTHON_HOST_PLATFORM=f"linux-{other}")
    assert f"error: the compiler built for {MACHINE}, but the wheel is for {other}" in message
    assert f"set _PYTHON_HOST_PLATFORM=linux-{MACHINE}" in message


@pytest.fixture
def with_headers_of_abi_1_2(project: Project) -> Project:
    """Compile with an abi.h that an older or newer core would have."""
    own = (core_include() / "custom_pypto/abi.h").read_text(encoding="utf-8")
    other = re.sub(r"(#define CUSTOM_PYPTO_ABI_MINOR) .*", r"\1 2", own)
    assert other != own
    project.write("include/custom_pypto/abi.h", other)
    project.configure(SOURCES + 'include-dirs = ["include"]\n')
    return project


def test_headers_of_a_newer_core_than_the_builder_knows(with_headers_of_abi_1_2: Project) -> None:
    assert (
        failure(with_headers_of_abi_1_2)
        .strip()
        .endswith(
            "error: the headers of custom-pypto-core have the core ABI 1.2, but this"
            " custom-pypto-build knows 1.0; install the versions of both that belong together: pip"
            " install --upgrade custom-pypto-build custom-pypto-core"
        )
    )


def test_the_core_abi_of_the_manifest_is_that_of_the_headers(
    with_headers_of_abi_1_2: Project,
) -> None:
    # Python runs this file when it starts.
    newer = with_headers_of_abi_1_2.write(
        "newer/sitecustomize.py",
        "from custom_pypto_contract import abi\nabi.CORE_ABI = (1, 3)\n",
    )
    path = os.pathsep.join([str(newer.parent), environment()["PYTHONPATH"]])
    wheel = with_headers_of_abi_1_2.wheel({"PYTHONPATH": path})
    assert wheel.manifest["core_abi"] == [1, 2]


def test_a_library_that_records_no_core_abi(project: Project) -> None:
    project.write("csrc/tiny.cpp", PLUGIN_CPP.replace("CUSTOM_PYPTO_RECORD_ABI", ""))
    assert (
        "does not record the core ABI that it was compiled for; register its ops with CUSTOM_"
        in (failure(project))
    )


def test_another_system(project: Project) -> None:
    message = failure(project, _PYTHON_HOST_PLATFORM="macosx-14.0-arm64")
    assert "error: plugins are built for Linux, this is macosx_14_0_arm64" in message


def test_an_editable_build_fails_with_the_same_text(project: Project) -> None:
    project.write("csrc/wrong.cpp", "int f() { return missing; }\n")
    with pytest.raises(BuildFailedError, match="error: compiling or linking") as caught:
        project.hook("build_editable", project.root / "dist")
    assert "Traceback" not in str(caught.value)


def test_what_is_missing_is_required_and_torch_never(project: Project) -> None:
    assert project.hook("get_requires_for_build_wheel") == []
    assert project.hook("get_requires_for_build_sdist") == []


def test_setuptools_that_is_too_old(project: Project, tmp_path: Path) -> None:
    metadata = tmp_path / "old" / "setuptools-65.5.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: setuptools\nVersion: 65.5.0\n")
    path = os.pathsep.join([str(tmp_path / "old"), environment()["PYTHONPATH"]])
    message = failure(project, PYTHONPATH=path)
    assert message.startswith("error: building a plugin needs setuptools>=77; install it, or build")
    requires = project.hook("get_requires_for_build_wheel", env={"PYTHONPATH": path})
    assert requires == ["setuptools>=77"]
