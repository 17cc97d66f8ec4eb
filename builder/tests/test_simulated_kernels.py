"""Simulated NPU kernels: each vendor of each project becomes an opp package."""

import ctypes
import re
from pathlib import Path

import pytest
from build_project import Project
from custom_pypto_build.errors import BuildError
from custom_pypto_build.simulated_kernels import Toolchain, build
from programs import run_program

# Stands for the simulator's toolchain: a flag that the sources can see.
TOOLCHAIN = Toolchain(("-std=c++17", "-O0", "-fPIC", "-DGIVEN=7"), (), ("-Wl,-z,now",))
KERNEL = 'extern "C" int {name}() {{ return {value}; }}\n'


def project(root: Path, table: str, settings: str = "") -> Project:
    """A project of simulated kernels: one file for each vendor, and a header."""
    made = Project(root)
    made.write(
        "pyproject.toml",
        f"[tool.custom-pypto]\n{settings}\n[tool.custom-pypto.simulated-kernels]\n{table}",
    )
    return made


@pytest.fixture
def first(tmp_path: Path) -> Project:
    made = with_custom(tmp_path / "first", "one", 1, 'stock = ["npu/stock.cpp"]\n')
    made.write("npu/stock.cpp", KERNEL.format(name="stock", value="GIVEN"))
    return made


@pytest.fixture
def second(tmp_path: Path) -> Project:
    return with_custom(tmp_path / "second", "two", 2)


def with_custom(root: Path, name: str, value: int, table: str = "") -> Project:
    """A project with a kernel of the vendor custom, which returns what a header says."""
    table = 'custom = ["npu/custom.cpp"]\n' + table
    made = project(root, table, 'include-dirs = ["include"]')
    made.write("include/value.h", f"#define VALUE {value}\n")
    made.write("npu/custom.cpp", "#include <value.h>\n" + KERNEL.format(name=name, value="VALUE"))
    return made


def library(folder: Path) -> Path:
    return folder / "op_api" / "lib" / "libcust_opapi.so"


def built(tmp_path: Path, *projects: Project) -> dict[str, Path]:
    return build([each.root for each in projects], tmp_path / "opp", tmp_path / "build", TOOLCHAIN)


ASCENDC = """\
#include "direct.h"
static int kernel(int value) { return value; }
extern "C" int launch(int blocks) {
  return kernel<<<blocks, nullptr,
                  3>>>(4);
}
"""
DIRECT = """\
namespace custom_pypto_simulator {
struct Direct {
  Direct(int (*kernel)(int), const char* name, int blocks, void*, int stream)
      : kernel(kernel), sum(name[0] == 'k' ? 100 * blocks + 10 * stream : 0) {}
  int operator()(int value) const { return kernel(value) + sum; }
  int (*kernel)(int);
  int sum;
};
}
"""


def test_launches_of_ascendc_call_the_simulator(tmp_path: Path, first: Project) -> None:
    first.write("npu/direct.h", DIRECT)
    source = first.write("npu/custom.cpp", ASCENDC)
    path = library(built(tmp_path, first)["custom"])
    # Where the caller's flags hide functions, too: the Ascend compiler does not.
    assert ctypes.CDLL(str(path)).launch(2) == 234
    source.write_text(ASCENDC.replace("(4)", "(five)"))
    with pytest.raises(BuildError, match=rf"{re.escape(str(source))}:5:\d+: error: .five. was not"):
        built(tmp_path, first)


def test_each_vendor_is_an_opp_package_with_one_library_of_all_projects(
    tmp_path: Path, first: Project, second: Project
) -> None:
    vendors = built(tmp_path, first, second)
    assert vendors == {name: tmp_path / "opp" / "vendors" / name for name in ("custom", "stock")}
    assert ctypes.CDLL(str(library(vendors["stock"]))).stock() == 7
    one = ctypes.CDLL(str(library(vendors["custom"])))
    assert (one.one(), one.two()) == (1, 2)
    config = tmp_path / "opp" / "vendors" / "config.ini"
    assert config.read_text() == "load_priority=custom,stock\n"
    # It is searched by this name.
    listed = run_program("readelf", "--dynamic", library(vendors["custom"])).stdout
    assert "soname: [libcust_opapi.so]" in listed


def test_vendors_built_last_are_searched_first(
    tmp_path: Path, first: Project, second: Project
) -> None:
    vendors = tmp_path / "opp" / "vendors"
    vendors.mkdir(parents=True)
    (vendors / "config.ini").write_text("load_priority=other,custom\n")
    built(tmp_path, second)
    assert (vendors / "config.ini").read_text() == "load_priority=custom,other\n"
    built(tmp_path, first)
    assert (vendors / "config.ini").read_text() == "load_priority=custom,stock,other\n"


def test_a_config_that_is_none_is_left_alone(tmp_path: Path, second: Project) -> None:
    config = tmp_path / "opp" / "vendors" / "config.ini"
    config.parent.mkdir(parents=True)
    config.write_text("priority=a\n")
    message = "must start with 'load_priority=', got 'priority=a'"
    with pytest.raises(BuildError, match=re.escape(message)):
        built(tmp_path, second)


def test_a_folder_that_the_wheel_ships_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path / "mine", 'custom = ["custom.cpp"]\n', 'opp = "opp"')
    made.write("custom.cpp", "")
    made.write("opp/vendors/real/readme.txt", "")
    message = "would be a part of the wheel, whose tool.custom-pypto.opp is 'opp'; choose another"
    with pytest.raises(BuildError, match=re.escape(message)):
        build([made.root], made.root / "opp", tmp_path / "build", TOOLCHAIN)


def test_the_project_that_cannot_be_built_is_named(tmp_path: Path, first: Project) -> None:
    with pytest.raises(BuildError, match=re.escape(f"{tmp_path / 'none'}: ")):
        built(tmp_path, Project(tmp_path / "none"))
    other = project(tmp_path / "other", "")
    with pytest.raises(BuildError, match=re.escape(f"{other.root} names no simulated kernels; na")):
        built(tmp_path, first, other)
    with pytest.raises(BuildError, match="no project was given"):
        built(tmp_path)


def test_plugins_with_launchers_of_one_name_have_each_their_own(
    tmp_path: Path, first: Project, second: Project
) -> None:
    for number, made in enumerate((first, second), 1):
        text = made.root.joinpath("pyproject.toml").read_text()
        text = text.replace(
            "[tool.custom-pypto]\n", '[tool.custom-pypto]\nascendc = ["ascendc/*.cpp"]\n'
        )
        text = text.replace("custom = [", 'custom = ["ascendc/*.cpp", ')
        text += f'[project.entry-points."custom_pypto.plugins"]\nop_{number} = "op_{number}"\n'
        made.write("pyproject.toml", text)
        made.write("ascendc/launch.cpp", KERNEL.format(name="launch", value=number))
    folder = library(built(tmp_path, first, second)["custom"]).parent
    assert sorted(path.name for path in folder.iterdir()) == [
        "libcust_opapi.so",
        "libcustom_pypto_op_1_ascendc.so",
        "libcustom_pypto_op_2_ascendc.so",
    ]
    for number in (1, 2):
        path = folder / f"libcustom_pypto_op_{number}_ascendc.so"
        assert ctypes.CDLL(str(path)).launch() == number
    assert not hasattr(ctypes.CDLL(str(folder / "libcust_opapi.so")), "launch")
