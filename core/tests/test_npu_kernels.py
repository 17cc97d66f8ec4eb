"""Which NPU kernel an op uses, with libraries that stand in for CANN's, in processes that have
neither CANN nor torch_npu. tests/npu/launch tests what a launch does, with the real torch_npu."""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from cpp_library import HIDDEN, SOURCES, compile_command, run
from cpp_library import build as build_plugin
from fork_server import Done, ForkServer

FOLDERS = ("ASCEND_CUSTOM_OPP_PATH", "ASCEND_OPP_PATH", "ASCEND_HOME_PATH")

PROLOGUE = """
import ctypes, os, sys, torch
def load(path):
    library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    assert library.custom_pypto_register_v1(ctypes.create_string_buffer(4096), 4096) == 0
    return library
def failure(function, *arguments):
    try:
        function(*arguments)
    except RuntimeError as error:
        return str(error)
    raise AssertionError("nothing was raised")
ops = torch.ops.custom_pypto
plugin = load({plugin!r})
"""


def build(source: str, library: Path, *flags: str) -> Path:
    library.parent.mkdir(parents=True, exist_ok=True)
    name = f"-Wl,-soname,{library.name}"
    run([*compile_command(*flags, "-shared", SOURCES / source), "-o", str(library), name])
    return library


# Name, source and flags of each library.
STAND_INS = {
    "old/libtorch_npu": ("torch_npu",),
    "first": ("aclnn", "-DNAME=aclnnFirst"),
    "second": ("aclnn", "-DNAME=aclnnSecond"),
    "half": ("aclnn", "-DNAME=aclnnFirst", "-DHALF"),
    "optional": ("aclnn", "-DNAME=aclnnOptional"),
    "kinds": ("aclnn", "-DNAME=aclnnKinds"),
    "launched": ("aclnn", "-DLAUNCHED=1"),
    "launched_too": ("aclnn", "-DLAUNCHED=2"),
    "libascendcl": ("aclnn", "-DSOC"),
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The plugin and STAND_INS, compiled once; tests copy them to where they are searched."""
    folder = tmp_path_factory.mktemp("npu")
    plugin = folder / "plugin" / "lib" / "libcustom_pypto_npu.so"
    with ThreadPoolExecutor() as pool:
        made = {
            name: pool.submit(build, f"fake_{source}.cpp", folder / f"{name}.so", *flags)
            for name, (source, *flags) in STAND_INS.items()
        }
        build_plugin("npu_kernels", plugin, *HIDDEN)
    return {"plugin": plugin, **{name: library.result() for name, library in made.items()}}


@dataclass(frozen=True)
class Machine:
    """A plugin's package and what else is on the machine."""

    folder: Path
    libraries: dict[str, Path]
    server: ForkServer

    @property
    def package(self) -> Path:
        return self.folder / "package"

    @property
    def plugin(self) -> Path:
        return self.package / "lib" / "libcustom_pypto_npu.so"

    def opp(self, folder: str, library: str) -> Path:
        """An opp package in `folder` with one of `libraries`."""
        package = self.folder / folder
        copy = package / "op_api" / "lib" / "libcust_opapi.so"
        copy.parent.mkdir(parents=True)
        shutil.copy(self.libraries[library], copy)
        return package

    def run(self, code: str, **variables: str) -> str:
        done = self.done(code, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def done(self, code: str, **variables: str) -> Done:
        prologue = PROLOGUE.format(plugin=str(self.plugin))
        return self.server.run(prologue + code, [], dict.fromkeys(FOLDERS, "") | variables)

    def chosen(self, **variables: str) -> str:
        return self.run("print(ops.headers_npu_chosen())", **variables)


@pytest.fixture
def machine(tmp_path: Path, libraries: dict[str, Path], server: ForkServer) -> Machine:
    made = Machine(tmp_path, libraries, server)
    made.plugin.parent.mkdir(parents=True)
    shutil.copy(libraries["plugin"], made.plugin)
    return made


def library(package: Path) -> str:
    return str(package / "op_api" / "lib" / "libcust_opapi.so")


CUSTOM, OPP, HOME = FOLDERS
# Packages, each with its library; what the variables name; which package is chosen.
CHOICES = {
    "wheel before custom packages": (
        "package/opp first, custom first",
        {CUSTOM: "custom"},
        "package/opp",
    ),
    "wheel with several vendors": (
        "package/opp/vendors/a second, package/opp/vendors/b first",
        {},
        "package/opp/vendors/b",
    ),
    "preferred symbol before an earlier place": (
        "package/opp second, custom first",
        {CUSTOM: "custom"},
        "custom",
    ),
    "fallback where no place has the preferred": ("custom second", {CUSTOM: "custom"}, "custom"),
    "entries in order": ("one first, other first", {CUSTOM: ":gone::other:one"}, "other"),
    "two phases before one": ("half half, whole first", {CUSTOM: "half:whole"}, "whole"),
    "load_priority in order": (
        "opp/vendors/a first, opp/vendors/b first",
        {OPP: "opp"},
        "opp/vendors/b",
    ),
    "custom package before vendors": (
        "opp/vendors/b first, custom first",
        {OPP: "opp", CUSTOM: "custom"},
        "custom",
    ),
    "CANN": ("cann first", {HOME: "cann"}, "cann"),
    "custom package before CANN": (
        "cann first, custom first",
        {HOME: "cann", CUSTOM: "custom"},
        "custom",
    ),
}


@pytest.mark.parametrize(("packages", "named", "chosen"), CHOICES.values(), ids=CHOICES)
def test_choice_of_a_kernel(
    machine: Machine, packages: str, named: dict[str, str], chosen: str
) -> None:
    places = {}
    for folder, name in (each.split() for each in packages.split(", ")):
        places[folder] = name, library(machine.opp(folder, name))
        if folder == "cann":
            (cann := machine.folder / "cann" / "lib64" / "libopapi_math.so").parent.mkdir()
            places[folder] = name, str(Path(places[folder][1]).rename(cann))
    if OPP in named:
        text = "# by hand\nload_priority=b, a\n"
        (machine.folder / "opp" / "vendors" / "config.ini").write_text(text)
    variables = {
        name: ":".join(entry and str(machine.folder / entry) for entry in entries.split(":"))
        for name, entries in named.items()
    }
    name, path = places[chosen]
    assert machine.chosen(**variables) == f"aclnn{name.capitalize()} {path}"


def compiled(plugin: Path, architecture: str = "dav-2201") -> Path:
    """Where the build puts a plugin's AscendC kernels."""
    return plugin.with_name(f"{plugin.stem}_ascendc_{architecture}.so")


def launched(machine: Machine, soc: str = "", **variables: str) -> str:
    """Run the op that prefers a kernel of the wheel on this NPU, and return its launches."""
    code = f"""
ctypes.CDLL({str(machine.libraries["libascendcl"])!r})
print(ops.headers_npu_launched())
"""
    return machine.run(code, FAKE_SOC=soc, **variables)


def test_what_the_build_compiled_is_launched(machine: Machine) -> None:
    machine.opp("package/opp", "second")
    shutil.copy(machine.libraries["launched"], compiled(machine.plugin))
    assert launched(machine) == f"launched {compiled(machine.plugin)} 1"


def test_wheels_with_kernels_of_one_name_have_each_their_own(machine: Machine) -> None:
    """The plugins are one file, twice: what differs is what is beside them."""
    places = {}
    for name, kernel in (("one", "launched"), ("other", "launched_too")):
        plugin = machine.folder / name / "lib" / f"libcustom_pypto_{name}.so"
        plugin.parent.mkdir(parents=True)
        shutil.copy(machine.libraries["plugin"], plugin)
        shutil.copy(machine.libraries[kernel], compiled(plugin))
        places[str(plugin)] = str(compiled(plugin))
    code = f"""
from pathlib import Path
from custom_pypto.core.kernel_queries import query_npu_kernels
for plugin, kernels in {places!r}.items():
    (record,) = (each for each in query_npu_kernels(Path(plugin)) if each.op == "npu_launched")
    assert (record.symbol, str(record.library)) == ("launched", kernels), record
"""
    machine.run(code)


def test_a_launcher_of_others_is_not_taken(machine: Machine) -> None:
    others = machine.opp("custom", "launched")
    shutil.copy(machine.libraries["launched"], compiled(machine.plugin.with_name("libother.so")))
    text = machine.run(
        "print(failure(ops.headers_npu_launched))", ASCEND_CUSTOM_OPP_PATH=str(others)
    )
    own = "libcustom_pypto_npu_ascendc"
    for place in (
        f"the plugin's own opp package: this plugin was built without CANN (no {own}_* in ",
        f"a custom opp package: {others}/op_api/lib/{own}.so: not there",
        f"a custom opp package: {library(others)}: has none of these",  # of aclnnSecond
    ):
        assert f"\n  {place}" in text


def test_an_opp_package_may_have_the_plugin_s_launchers(machine: Machine) -> None:
    custom = machine.opp("custom", "second")
    kernels = custom / "op_api" / "lib" / "libcustom_pypto_npu_ascendc.so"
    shutil.copy(machine.libraries["launched"], kernels)
    assert launched(machine, ASCEND_CUSTOM_OPP_PATH=str(custom)) == f"launched {kernels} 1"


@pytest.mark.parametrize(
    ("soc", "architecture"),
    [("Ascend910B3", "dav-3510"), ("Ascend910_9391", "dav-2002"), ("Ascend950PR_9579", "dav-2201")],
)
def test_kernels_for_another_npu_are_passed_over_by_name(
    machine: Machine, soc: str, architecture: str
) -> None:
    shutil.copy(machine.libraries["launched"], compiled(machine.plugin, architecture))
    custom = machine.opp("custom", "second")
    stock = f"aclnnSecond {library(custom)} 0"
    assert launched(machine, soc, ASCEND_CUSTOM_OPP_PATH=str(custom)) == stock
    code = f"""
ctypes.CDLL({str(machine.libraries["libascendcl"])!r})
from pathlib import Path
from custom_pypto.core.kernel_queries import query_npu_kernels
print(failure(ops.headers_npu_launched))
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {str(custom)!r}
records = {{each.op: each for each in query_npu_kernels(Path({str(machine.plugin)!r}))}}
assert not records["npu_two"].searched
print(*records["npu_launched"].searched)
"""
    reason = (
        f"{compiled(machine.plugin, architecture)}: not used: it was compiled for {architecture},"
        f" and this machine's {soc} is "
    )
    printed = machine.run(code, FAKE_SOC=soc)
    assert f"\n  the plugin's own opp package: {reason}" in printed
    assert printed.splitlines()[-1].startswith(reason)
    needed = printed.rpartition("build the plugin with NPU_ARCH=")[2]
    shutil.copy(machine.libraries["launched_too"], compiled(machine.plugin, needed))
    assert launched(machine, soc) == f"launched {compiled(machine.plugin, needed)} 2"


def test_kernels_run_on_an_npu_that_is_not_known(machine: Machine) -> None:
    kernels = compiled(machine.plugin, "dav-9999")
    shutil.copy(machine.libraries["launched"], kernels)
    assert launched(machine, "Ascend960DT") == f"launched {kernels} 1"


def test_a_choice_is_made_once_and_a_missing_kernel_is_searched_again(machine: Machine) -> None:
    one = machine.opp("one", "second")
    other = machine.opp("other", "first")
    code = f"""
failure(ops.headers_npu_chosen)
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {str(one)!r}
first = ops.headers_npu_chosen()
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {str(other)!r}
assert ops.headers_npu_chosen() == first
print(first)
"""
    assert machine.run(code) == f"aclnnSecond {library(one)}"


def test_missing_kernel_names_every_place_and_what_to_do(machine: Machine) -> None:
    custom = machine.opp("custom", "optional")
    broken = machine.folder / "broken" / "op_api" / "lib" / "libcust_opapi.so"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"no library")
    gone = machine.folder / "gone"
    half = machine.opp("half", "half")
    text = machine.run(
        "print(failure(ops.headers_npu_chosen))",
        ASCEND_CUSTOM_OPP_PATH=f"{custom}:{machine.folder / 'broken'}:{gone}:{half}",
        ASCEND_OPP_PATH=str(machine.folder / "opp"),
    )
    start = "npu_two: this machine has no NPU kernel for it, which would be one of "
    assert text.startswith(f"{start}aclnnFirst, aclnnSecond. Searched were\n")
    for place in (
        f"the plugin's own opp package: this plugin ships none ({machine.package}/opp)",
        f"a custom opp package: {library(custom)}: has none of these",
        f"a custom opp package: {broken}: cannot be loaded: ",
        f"a custom opp package: {library(gone)}: not there",
        f"a custom opp package: {library(half)}: has aclnnFirstGetWorkspaceSize but no aclnnFirst",
        f"a custom opp package: {machine.folder}/opp/vendors/config.ini has no load_priority",
        "CANN: ASCEND_HOME_PATH is not set",
        "CANN: libopapi.so, libaclnn_ops_infer.so, ",
    ):
        assert f"\n  {place}" in text
    assert text.count("cannot be loaded: ") == 2  # the broken one, and all of CANN's in one line
    assert "ASCEND_CUSTOM_OPP_PATH" in text.splitlines()[-1]


def test_optional_kernel_that_is_missing_stays_missing(machine: Machine) -> None:
    custom = machine.opp("custom", "optional")
    code = f"""
print(ops.headers_npu_found())
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {str(custom)!r}
print(ops.headers_npu_found())
"""
    assert machine.run(code).split() == ["none", "none"]
    found = machine.run("print(ops.headers_npu_found())", ASCEND_CUSTOM_OPP_PATH=str(custom))
    assert found == library(custom)


def test_query_tells_of_every_launch_without_choosing(machine: Machine) -> None:
    one = machine.opp("one", "second")
    other = machine.opp("other", "first")
    code = f"""
from pathlib import Path
from custom_pypto.core.kernel_queries import query_npu_kernels
before = query_npu_kernels(Path({str(machine.plugin)!r}))
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {str(other)!r}
assert ops.headers_npu_chosen().startswith("aclnnFirst")
for record in before:
    print(record.op, "/".join(record.symbols), record.symbol, record.library, len(record.searched))
"""
    lines = machine.run(code, ASCEND_CUSTOM_OPP_PATH=str(one)).splitlines()
    assert lines[0] == f"npu_two aclnnFirst/aclnnSecond aclnnSecond {library(one)} 0"
    assert lines[1].startswith("npu_optional aclnnOptional  None ")
    assert lines[2] == f"npu_launched launched/aclnnSecond aclnnSecond {library(one)} 0"
    assert sorted(line.split()[0] for line in lines[3:]) == ["aclnnFirst", "aclnnKinds"]


def test_missing_and_old_torch_npu_are_reported_when_an_op_launches(machine: Machine) -> None:
    custom = machine.opp("custom", "first")
    old = str(machine.libraries["old/libtorch_npu"])
    code = f"print(failure(ops.headers_npu_first)); ctypes.CDLL({old!r})\n"
    text = machine.run(2 * code, ASCEND_CUSTOM_OPP_PATH=str(custom))
    for words in (
        "torch_npu is not loaded",
        "pip install torch_npu",
        f"the installed torch_npu ({old}) has no ConvertType(at::Tensor)",
        "install torch_npu 2.10 or newer",
    ):
        assert words in text


OTHER_TYPES = {
    "float": "1.0f",
    "unsigned int": "1u",
    "std::vector<int>": "std::vector<int>{1}",
    "void*": "static_cast<void*>(nullptr)",
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_other_types_are_compile_errors_that_name_them(tmp_path: Path, name: str) -> None:
    source = tmp_path / "wrong.cpp"
    call = f"EXEC_NPU_CMD(aclnnFirst, {OTHER_TYPES[name]});"
    source.write_text(f"#include <custom_pypto/npu/launch.h>\nvoid f() {{ {call} }}\n")
    result = subprocess.run(
        compile_command("-fsyntax-only", source), capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "a launch takes Tensor, RawTensor, int64_t, double" in result.stderr
    assert "Cast a float to double, another integer to int64_t" in result.stderr
    assert name in result.stderr


KINDS = (
    "int64_t number, double real, bool flag, const char *text, char *maybeText,"
    " const aclIntArray *numbers, const aclFloatArray *reals, const aclBoolArray *flags,"
    " double maybeReal, aclDataType dtype, const aclScalar *scalar,"
    " const aclTensor *absentOptional, const char *literal"
)


def write_header(package: Path, arguments: str = KINDS, name: str = "aclnn_kinds.h") -> Path:
    """Put the header of aclnnKinds into an opp package."""
    header = package / "op_api" / "include" / name
    header.parent.mkdir(exist_ok=True)
    ends = "uint64_t *workspaceSize, aclOpExecutor **executor"
    header.write_text(f"\naclnnStatus aclnnKindsGetWorkspaceSize({arguments}, {ends});\n")
    return header


def test_functions_of_two_libraries_are_no_kernel(machine: Machine) -> None:
    package = machine.opp("custom", "first")
    path = Path(library(package))
    other = path.with_name("first.so")
    path.rename(other)
    linked = ("-Wl,--no-as-needed", str(other), "-Wl,-rpath,$ORIGIN")
    build("fake_aclnn.cpp", path, "-DNAME=aclnnFirst", "-DHALF", *linked)
    text = machine.run(
        "print(failure(ops.headers_npu_chosen))", ASCEND_CUSTOM_OPP_PATH=str(package)
    )
    assert text.startswith("npu_two: aclnnFirst: the kernel's two functions are in two libraries")
    assert f"aclnnFirstGetWorkspaceSize in {path} and aclnnFirst in " in text
    assert "first.so" in text


def compare(machine: Machine, named: str = "custom") -> str:
    """What is said of aclnnKinds, with these packages in ASCEND_CUSTOM_OPP_PATH."""
    code = f"""
from pathlib import Path
from custom_pypto.core.kernel_headers import find_kernels
found = find_kernels(Path({str(machine.plugin)!r}))
[record] = (each for each in found if each.symbols == ("aclnnKinds",))
print(record.library, *record.shadowed, record.mismatch + record.unchecked)
"""
    packages = ":".join(str(machine.folder / each) for each in named.split())
    return machine.run(code, ASCEND_CUSTOM_OPP_PATH=packages)


def test_a_query_compares_names_and_says_which_package_is_shadowed(machine: Machine) -> None:
    first, second = machine.opp("first", "kinds"), machine.opp("second", "kinds")
    machine.opp("third", "second")
    named = "first third second"
    none = f"no header in {first}/op_api/include declares aclnnKinds"
    assert compare(machine, named) == f"{library(first)} {library(second)} {none}"
    write_header(first, KINDS.replace("bool flag", "double eps, bool flag"))
    difference = "argument 3 of the header, `double eps`, is not passed"
    assert difference in compare(machine, named)


def test_a_header_that_everybody_can_write_decides_nothing(machine: Machine) -> None:
    header = write_header(machine.opp("custom", "kinds"), "bool flag")
    header.chmod(0o666)
    fault = f"{header} can be changed by every user of this machine"
    assert compare(machine).startswith(f"{library(machine.folder / 'custom')} {fault}")


def test_of_several_declarations_one_must_fit(machine: Machine) -> None:
    package = machine.opp("custom", "kinds")
    write_header(package, "bool flag")
    assert "is launched with other arguments" in compare(machine)
    write_header(package, name="aclnn_kinds_of_another_cann.h")
    assert compare(machine) == library(package)


VERSIONS = (
    *("8.1.RC1.alpha001", "8.1.RC1.beta1", "8.1.RC1", "8.3.RC1", "8.3.RC2", "8.5.0.alpha001"),
    *("8.5.0-alpha.2", "8.5.0.alpha003", "8.5.0.alpha010", "8.5.0.beta1", "8.5.0-rc.1", "8.5.0"),
    *("8.5.1.alpha001", "8.5.1", "8.10.0", "9.0.0-alpha", "9.0.0"),
)
NO_VERSIONS = (
    *("", "8", "8.5", "8.5.", "8..0", "8.5.T10", "8.5.0.T10", "8.5.0.alpha1.beta2.rc3", "latest"),
    *("8.5.0.alpha1x", "99999999999999999999.1.0"),
)


def test_versions_of_cann_are_ordered_as_they_were_released(machine: Machine) -> None:
    known = machine.run(f"""
versions = {VERSIONS!r}
for i, left in enumerate(versions):
    for j, right in enumerate(versions):
        order = ops.headers_npu_version_order(left, right)
        assert order == ("<" if i < j else ">" if i > j else "="), (left, order, right)
assert ops.headers_npu_version_order("8.5.0.alpha003", "8.5.0-alpha.3") == "="
for text in {NO_VERSIONS!r}:
    assert ops.headers_npu_version_order(text, "8.5.0") == "?", text
print(ops.headers_npu_knows_cann_version())
""")
    assert known == "False"
