"""AscendC kernels: compiled into the wheel where CANN's compiler is, left out where it is not."""

import hashlib
from pathlib import Path

import pytest
from build_project import SOURCES, BuildFailedError, Project

LIBRARY = "custom_pypto_tiny/lib/libcustom_pypto_tiny_ascendc_dav-2201.so"
LIBRARY_3510 = LIBRARY.replace("2201", "3510")
NO_COMPILER = "the AscendC kernels are not compiled, the wheel goes without: there is no bisheng"

# Writes its arguments in the place of the library, which is the last of them.
BISHENG = """\
#!/bin/sh
for last; do :; done
echo "$@" > "$last"
"""


@pytest.fixture
def project(project: Project) -> Project:
    project.configure(SOURCES + 'ascendc = ["npu/*.cpp"]\n')
    project.write("npu/kernel.cpp", "extern void not_even_cpp<<<>>>;\n")
    return project


@pytest.fixture
def cann(tmp_path: Path) -> dict[str, str]:
    compiler = tmp_path / "cann/compiler/ccec_compiler/bin/bisheng"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(BISHENG)
    compiler.chmod(0o755)
    return {"ASCEND_HOME_PATH": str(tmp_path / "cann")}


def test_without_the_compiler_a_build_leaves_the_kernels_out(project: Project) -> None:
    wheel = project.wheel({"ASCEND_HOME_PATH": ""})
    assert LIBRARY not in wheel.files
    assert wheel.manifest["ascendc"] is None
    assert NO_COMPILER in project.output


def test_with_the_compiler_the_wheel_has_kernels_for_the_usual_npus(
    project: Project, cann: dict[str, str]
) -> None:
    wheel = project.wheel(cann)
    command = wheel.files[LIBRARY].decode().split()
    assert command[:3] == ["-x", "asc", "--npu-arch=dav-2201"]
    assert {"-shared", "-fPIC", "npu/kernel.cpp"} <= set(command)
    assert NO_COMPILER not in project.output
    assert wheel.manifest["ascendc"] == {
        "path": "lib/libcustom_pypto_tiny_ascendc_dav-2201.so",
        "sha256": hashlib.sha256(wheel.files[LIBRARY]).hexdigest(),
        "architecture": "dav-2201",
    }


def test_a_variable_names_other_npus(project: Project, cann: dict[str, str]) -> None:
    wheel = project.wheel(cann | {"NPU_ARCH": "dav-3510"})
    assert b"--npu-arch=dav-3510" in wheel.files[LIBRARY_3510]
    assert LIBRARY not in wheel.files
    with pytest.raises(BuildFailedError, match=r"NPU_ARCH must be an --npu-arch.*got '\.\./2201'"):
        project.wheel(cann | {"NPU_ARCH": "../2201"})


def test_an_editable_install_has_those_of_the_last_build(
    project: Project, cann: dict[str, str]
) -> None:
    library = project.root / "src" / LIBRARY
    project.hook("build_editable", project.root / "dist", env=cann)
    assert library.exists()
    project.hook("build_editable", project.root / "dist", env=cann | {"NPU_ARCH": "dav-3510"})
    assert [each.name for each in library.parent.glob("*_ascendc*")] == [Path(LIBRARY_3510).name]
    project.hook("build_editable", project.root / "dist", env={"ASCEND_HOME_PATH": ""})
    assert not [*library.parent.glob("*_ascendc*")]


def test_what_does_not_compile_fails_the_build(project: Project, cann: dict[str, str]) -> None:
    compiler = Path(cann["ASCEND_HOME_PATH"], "compiler/ccec_compiler/bin/bisheng")
    compiler.write_text("#!/bin/sh\necho unknown chip\nexit 1\n")
    with pytest.raises(BuildFailedError, match=r"kernels for dav-2201 failed(?s:.*)unknown chip"):
        project.wheel(cann)
