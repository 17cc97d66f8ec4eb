"""The wheel of a plugin: tag, files, exports of its library; and that it is reproducible."""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from build_project import PLUGIN_CPP, SOURCES, Project, Wheel, tiny_project
from custom_pypto_build.ninja import find_ninja
from custom_pypto_contract import abi, platforms
from custom_pypto_contract.manifest import EMPTY_CONTRACT
from programs import run_program

LOUD = '__attribute__((visibility("default"))) int kernel() { return EXTRA; }\n'
Built = tuple[Project, Wheel]
PACKAGE = {
    f"custom_pypto_tiny/{name}"
    for name in (
        *("__init__.py", "custom_pypto_plugin.json", "ops.py", "py.typed"),
        "lib/libcustom_pypto_tiny.so",
    )
}


# Each program writes what it is called with into a file, before the real one runs.
PROGRAM = """#!/bin/sh
echo "$@" >> "$0.log"
exec {} "$@"
"""
FLAGS = """\
static_assert(LEVEL == 2 && CPP == 3);
const char* some = SOME;
// Something of libtorch_cpu must be used, or the linker may leave it out.
extern "C" int aoti_torch_get_device_type(void*, int*);
int device(void* t) { int d; return aoti_torch_get_device_type(t, &d) + d; }
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A plugin with a file of each kind, built with each variable that builds read."""
    project = tiny_project(
        tmp_path_factory.mktemp("project") / "with spaces & $HOME",
        SOURCES
        + 'include-dirs = ["include"]\nopp = "opp"\nrequires-ops = ["other"]\n'
        + """cxx-flags = ["-DLEVEL=1", '-DSOME="a b$$c"']\n"""
        + '[tool.custom-pypto.simulated-kernels]\ncustom = ["tests/npu/custom.cpp"]\n',
    )
    project.write("tests/npu/custom.cpp", "#error not for the wheel\n")
    project.write("csrc/cpu/kernel.cpp", "#include <extra.h>\n" + LOUD)
    project.write("csrc/flags.cpp", FLAGS)
    project.write("include/extra.h", "#define EXTRA 1\n")
    project.write("opp/vendors/config.ini", "load_priority=tiny\n")
    project.write("notes.txt", "not for the wheel\n")
    for name, program in (("wrapper", ""), ("ninja", find_ninja())):
        project.write(f"my tools/{name}", PROGRAM.format(program)).chmod(0o755)
    tools = project.root / "my tools"
    environment = {
        "CXX": f"'{tools}/wrapper' g++",
        "CXXFLAGS": "-ULEVEL -DLEVEL=2",
        "CPPFLAGS": "-DCPP=3",
        "LDFLAGS": "-Wl,-soname,x.so",
        "MAX_JOBS": "1",
        "PATH": os.pathsep.join([str(tools), os.environ["PATH"]]),
    }
    return project, project.wheel(environment)


def test_the_wheel_is_for_every_python_on_this_platform(built: Built) -> None:
    tag = f"py3-none-{platforms.platform_tag()}"
    assert built[1].path.name == f"custom_pypto_tiny-0.3.0-{tag}.whl"
    text = built[1].files["custom_pypto_tiny-0.3.0.dist-info/WHEEL"].decode()
    assert "Root-Is-Purelib: false" in text
    assert f"Tag: {tag}" in text


def test_the_wheel_holds_the_package_only(built: Built) -> None:
    files = {name for name in built[1].files if ".dist-info/" not in name}
    assert files == PACKAGE | {"custom_pypto_tiny/opp/vendors/config.ini"}


def listed(built: Built, folder: Path, *command: str) -> str:
    """Return what a command prints of the library."""
    (library := folder / "library.so").write_bytes(built[1].library)
    return run_program(*command, library).stdout


def test_the_library_exports_only_its_entry_functions(built: Built, tmp_path: Path) -> None:
    command = ("nm", "--dynamic", "--defined-only", "--format=just-symbols")
    names = {"custom_pypto_register_v1", "custom_pypto_unregister_v1"}
    assert set(listed(built, tmp_path, *command).split()) == names


def test_the_library_needs_libtorch_without_a_path(built: Built, tmp_path: Path) -> None:
    needed = listed(built, tmp_path, "readelf", "--dynamic")
    assert "[libtorch_cpu.so]" in needed
    assert "RUNPATH" not in needed
    assert "RPATH" not in needed


def test_flags_are_passed_as_written_those_of_the_environment_last(built: Built) -> None:
    project, wheel = built
    assert b"a b$$c\0" in wheel.library
    [link] = re.findall(r"rule link\n  command = (.*)", project.compile_commands())
    assert link.endswith("-ULEVEL -DLEVEL=2 -Wl,-soname,x.so")


def test_cxx_may_have_several_words(built: Built) -> None:
    # For the names of macros, for each object, for the library.
    lines = (built[0].root / "my tools" / "wrapper.log").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["g++"] * 5


def test_max_jobs_reaches_ninja(built: Built) -> None:
    assert (built[0].root / "my tools" / "ninja.log").read_text().endswith(" -j 1\n")


def test_the_manifest_describes_the_plugin(built: Built) -> None:
    assert built[1].manifest == {
        "manifest_version": abi.MANIFEST_VERSION,
        "contract_version": 1,
        "name": "tiny",
        "distribution": "custom-pypto-tiny",
        "version": "0.3.0",
        "core_abi": list(abi.CORE_ABI),
        "torch_target": "2.10",
        "platform": platforms.platform_tag(),
        "ops": [
            {"name": name, "schema": schema, **EMPTY_CONTRACT}
            for name, schema in (
                ("tiny", "tiny(Tensor self, int k=3) -> Tensor"),
                ("tiny.b", "tiny.b(Tensor self) -> Tensor"),
            )
        ],
        "requires_ops": ["other"],
        "library": {
            "path": "lib/libcustom_pypto_tiny.so",
            "sha256": hashlib.sha256(built[1].library).hexdigest(),
        },
        "opp": "opp",
        "ascendc": None,
        "kernels": None,
    }


def test_a_build_imports_neither_torch_nor_the_plugin(built: Built) -> None:
    assert built[0].imported == []


def test_no_path_is_in_the_library(built: Built) -> None:
    assert str(built[0].root).encode() not in built[1].library
    assert sys.prefix.encode() not in built[1].library


def test_two_builds_in_two_folders_give_the_same_wheel(tmp_path: Path) -> None:
    # With debug information and __FILE__, which usually contain the folder.
    env = {"CXXFLAGS": "-g", "SOURCE_DATE_EPOCH": "1700000000"}
    wheels = []
    for seed in ("1", "2"):
        project = tiny_project(tmp_path / seed)
        project.write("csrc/file.cpp", "const char* file() { return __FILE__; }\n")
        wheels.append(project.wheel({**env, "PYTHONHASHSEED": seed}))
    assert wheels[0].library == wheels[1].library
    assert wheels[0].path.read_bytes() == wheels[1].path.read_bytes()


def test_a_file_renamed_since_the_last_build_is_not_in_the_wheel(project: Project) -> None:
    project.configure(SOURCES + 'opp = "opp"\n')
    old = project.write("opp/old.ini", "")
    project.wheel()
    old.rename(old.with_name("new.ini"))
    files = project.wheel().files
    assert "custom_pypto_tiny/opp/new.ini" in files
    assert "custom_pypto_tiny/opp/old.ini" not in files


def test_metadata_is_prepared_without_compiling(tmp_path: Path, project: Project) -> None:
    project.write("csrc/tiny.cpp", "#error not now\n")
    folder = tmp_path / "metadata"
    folder.mkdir()
    name = project.hook("prepare_metadata_for_build_wheel", folder)
    assert (folder / name / "entry_points.txt").is_file()


def test_a_wheel_built_from_the_source_distribution_is_the_same(tmp_path: Path) -> None:
    project = tiny_project(
        tmp_path / "project",
        f'{SOURCES}include-dirs = ["include"]\nopp = "opp"\nascendc = ["npu/*.cpp"]\n'
        '[tool.custom-pypto.simulated-kernels]\ncustom = ["tests/npu/custom.cpp"]\n',
    )
    expected = ("tests/npu/custom.cpp", "tests/npu/shared.h", "include/deep/extra.hpp")
    expected += ("opp/a.ini", "npu/kernel.cpp")
    for name in (*expected, "include/notes.txt"):
        project.write(name, "")
    # What an editable install wrote is left out.
    project.hook("build_editable", tmp_path)
    shutil.unpack_archive(tmp_path / project.hook("build_sdist", tmp_path), tmp_path, filter="data")
    unpacked = Project(tmp_path / "custom_pypto_tiny-0.3.0")
    assert all((unpacked.root / name).is_file() for name in (*expected, "csrc/answer.h"))
    assert not (unpacked.root / "include/notes.txt").exists()
    package = {path.name for path in (unpacked.root / "src/custom_pypto_tiny").rglob("*")}
    assert package == {"__init__.py", "py.typed"}
    own, other = project.wheel(), unpacked.wheel()
    assert other.manifest == own.manifest
    assert other.files.keys() == own.files.keys()


def test_a_project_without_python_gets_its_package(tmp_path: Path) -> None:
    project = tiny_project(tmp_path, 'sources = ["src/*.cpp"]\ninclude-dirs = ["csrc"]\n')
    shutil.rmtree(tmp_path / "src")
    # Neither C++ in src nor Python in tests is a package.
    project.write("src/tiny.cpp", PLUGIN_CPP)
    project.write("tests/__init__.py", "")
    assert {name for name in project.wheel().files if ".dist-info/" not in name} == PACKAGE
