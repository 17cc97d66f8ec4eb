"""Which NPU kernel an op uses, with libraries that stand in for CANN's, in processes that have
neither CANN nor torch_npu. tests/npu/launch tests what a launch does, with the real torch_npu."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from cpp_library import HIDDEN, SOURCES, compile_command, run
from cpp_library import build as build_plugin
from custom_pypto.core.opp import find_packages
from custom_pypto_contract.manifest import ASCENDC_SUFFIX, OPP_FOLDER, OPP_LIBRARY
from fork_server import ForkServer
from programs import run_program

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
ctypes.CDLL({runtime!r})
from pathlib import Path
from custom_pypto.core.kernel_headers import find_kernels
from custom_pypto.core.kernel_queries import query_npu_kernels
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

    def path(self, place: str) -> Path:
        """The library of an opp package, of CANN, or with the plugin's AscendC kernels.

        A `place` is a package, "cann", a package and ":ascendc", or "wheel:" and an architecture.
        """
        folder, _, kind = place.partition(":")
        if folder == "wheel":
            return self.plugin.with_name(f"{self.plugin.stem}{ASCENDC_SUFFIX}_{kind}.so")
        if folder == "cann":
            return self.folder / "cann" / "lib64" / "libopapi_math.so"
        path = self.folder / folder / OPP_LIBRARY
        return path.with_name(f"{self.plugin.stem}{ASCENDC_SUFFIX}.so") if kind else path

    def put(self, place: str, library: str) -> Path:
        """Put one of `libraries` there."""
        path = self.path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.libraries[library], path)
        return path

    def run(self, code: str, packages: str = "", **variables: str) -> str:
        """Run code with these `packages` in ASCEND_CUSTOM_OPP_PATH; return what it printed."""
        runtime = str(self.libraries["libascendcl"])
        prologue = PROLOGUE.format(plugin=str(self.plugin), runtime=runtime)
        named = ":".join(each and str(self.folder / each) for each in packages.split(":"))
        environment = {**dict.fromkeys(FOLDERS, ""), CUSTOM: named, **variables}
        done = self.server.run(prologue + code, [], environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def machine(tmp_path: Path, libraries: dict[str, Path], server: ForkServer) -> Machine:
    made = Machine(tmp_path, libraries, server)
    made.plugin.parent.mkdir(parents=True)
    shutil.copy(libraries["plugin"], made.plugin)
    return made


CUSTOM, OPP, HOME = FOLDERS
# Places, each with its library; the custom opp packages that are named; which place is chosen.
CHOICES = {
    "wheel before custom packages": ("package/opp first, custom first", "custom", "package/opp"),
    "wheel with several vendors": (
        "package/opp/vendors/a second, package/opp/vendors/b first",
        "",
        "package/opp/vendors/b",
    ),
    "preferred symbol of a later place": ("package/opp second, custom first", "custom", "custom"),
    "fallback where no place has the preferred": ("custom second", "custom", "custom"),
    "entries in order": ("one first, other first", ":gone::other:one", "other"),
    "two phases before one": ("half half, whole first", "half:whole", "whole"),
    "load_priority in order": ("opp/vendors/a first, opp/vendors/b first", "", "opp/vendors/b"),
    "custom package before vendors": ("opp/vendors/b first, custom first", "custom", "custom"),
    "CANN": ("cann first", "", "cann"),
    "custom package before CANN": ("cann first, custom first", "custom", "custom"),
    "compiled by the build": ("package/opp second, wheel:dav-2201 launched", "", "wheel:dav-2201"),
    "AscendC kernels in an opp package": (
        "custom second, custom:ascendc launched",
        "custom",
        "custom:ascendc",
    ),
    "kernels for an NPU that is not known": ("wheel:dav-9999 launched", "", "wheel:dav-9999"),
}


@pytest.mark.parametrize(("places", "packages", "chosen"), CHOICES.values(), ids=CHOICES)
def test_choice_of_a_kernel(machine: Machine, places: str, packages: str, chosen: str) -> None:
    libraries = dict(each.split() for each in places.split(", "))
    for place, name in libraries.items():
        machine.put(place, name)
    variables = {"FAKE_SOC": "Ascend960DT"}
    if "opp/" in places and "package/" not in places:
        text = "# by hand\nload_priority=b, a\n"
        (machine.folder / "opp" / "vendors" / "config.ini").write_text(text)
        variables[OPP] = str(machine.folder / "opp")
    if "cann" in libraries:
        variables[HOME] = str(machine.folder / "cann")
    name, path = libraries[chosen], machine.path(chosen)
    if chosen.startswith("package"):
        assert path in [each / OPP_LIBRARY for each in find_packages(machine.package / OPP_FOLDER)]
    if "launched" in places:
        op, expected = "launched", f"launched {path} 1"
    else:
        op, expected = "chosen", f"aclnn{name.capitalize()} {path}"
    assert machine.run(f"print(ops.headers_npu_{op}())", packages, **variables) == expected


@pytest.mark.parametrize(
    ("soc", "architecture"),
    [("Ascend910B3", "dav-3510"), ("Ascend910_9391", "dav-2002"), ("Ascend950PR_9579", "dav-2201")],
)
def test_kernels_for_another_npu_are_passed_over_by_name(
    machine: Machine, soc: str, architecture: str
) -> None:
    unfit = machine.put(f"wheel:{architecture}", "launched")
    stock = machine.put("custom", "second")
    printed = machine.run(
        f"""
print(failure(ops.headers_npu_launched))
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {str(machine.folder / "custom")!r}
records = {{each.op: each for each in query_npu_kernels(Path({str(machine.plugin)!r}))}}
assert not records["npu_two"].searched
print(*records["npu_launched"].searched)
print(ops.headers_npu_launched())
""",
        FAKE_SOC=soc,
    )
    reason = f"{unfit}: not used: it was compiled for {architecture}, and this machine's {soc} is "
    *failure, searched, launched = printed.splitlines()
    assert f"  the plugin's own opp package: {reason}" in "\n".join(failure)
    assert searched.startswith(reason)
    assert launched == f"aclnnSecond {stock} 0"
    needed = machine.put(f"wheel:{searched.rpartition('NPU_ARCH=')[2]}", "launched_too")
    assert machine.run("print(ops.headers_npu_launched())", FAKE_SOC=soc) == f"launched {needed} 2"


def test_kernels_of_one_name_in_two_wheels_are_each_plugin_s_own(machine: Machine) -> None:
    own, other = machine.put("wheel:dav-2201", "launched"), machine.put("other", "launched_too")
    load = f"ctypes.CDLL({str(other)!r}, mode=os.RTLD_GLOBAL | os.RTLD_NOW)"
    code = f"print({load}.launched(), ops.headers_npu_launched())"
    assert machine.run(code, FAKE_SOC="Ascend910B1") == f"2 launched {own} 1"


def test_a_kernel_is_searched_until_it_is_found(machine: Machine) -> None:
    one, _ = machine.put("one", "second"), machine.put("other", "first")
    code = f"""
os.chdir({str(machine.folder)!r})
failure(ops.headers_npu_chosen)
for package in ("one", "other"):
    os.environ["ASCEND_CUSTOM_OPP_PATH"] = package
    print(ops.headers_npu_chosen())
"""
    assert machine.run(code).splitlines() == [f"aclnnSecond {one.relative_to(machine.folder)}"] * 2


def test_an_optional_kernel_that_is_missing_stays_missing(machine: Machine) -> None:
    found = machine.put("optional", "optional")
    call = "print(ops.headers_npu_found())\n"
    later = f"os.environ['ASCEND_CUSTOM_OPP_PATH'] = {str(machine.folder / 'optional')!r}\n"
    assert machine.run(call + later + call).splitlines() == ["none"] * 2
    assert machine.run(call, "optional") == str(found)


# An op, its kernels, and places that were searched. The launchers of others are not taken.
MISSING = {
    "headers_npu_chosen": (
        "npu_two: this machine has no NPU kernel for it, which would be one of aclnnFirst, aclnnS",
        [
            "the plugin's own opp package: this plugin ships none ({folder}/package/opp)",
            "a custom opp package: {custom}: has none of these",
            "a custom opp package: {broken}: cannot be loaded: ",
            "a custom opp package: {gone}: not there",
            "a custom opp package: {half}: has aclnnFirstGetWorkspaceSize but no aclnnFirst",
            "a custom opp package: {folder}/opp/vendors/config.ini has no load_priority",
            "CANN: ASCEND_HOME_PATH is not set",
            "CANN: libopapi.so, libaclnn_ops_infer.so, ",
        ],
    ),
    "headers_npu_launched": (
        "npu_launched: this machine has no NPU kernel for it, which would be one of launched, acl",
        [
            "the plugin's own opp package: this plugin was built without CANN (no {ascendc}_*",
            "a custom opp package: {no_ascendc}, {gone}, {gone_ascendc}: not there",
            "a custom opp package: {launched}: has none of these",  # of aclnnSecond
        ],
    ),
}


@pytest.mark.parametrize("op", MISSING)
def test_missing_kernel_names_every_place(machine: Machine, op: str) -> None:
    paths = {
        "folder": machine.folder,
        "ascendc": Path("libcustom_pypto_npu_ascendc"),
        "no_ascendc": machine.path("broken:ascendc"),
        "gone": machine.path("gone"),
        "gone_ascendc": machine.path("gone:ascendc"),
        "custom": machine.put("custom", "optional"),
        "half": machine.put("half", "half"),
        "launched": machine.put("launched", "launched"),
        "broken": machine.put("broken", "first"),
    }
    paths["broken"].write_bytes(b"no library")
    shutil.copy(paths["launched"], machine.plugin.with_name("libother_ascendc_dav-2201.so"))
    text = machine.run(
        f"print(failure(ops.{op}))",
        "custom:broken:gone:half:launched",
        ASCEND_OPP_PATH=str(machine.folder / "opp"),
    )
    start, places = MISSING[op]
    assert text.startswith(start)
    for place in places:
        assert f"\n  {place.format(**paths)}" in text
    assert text.count("cannot be loaded: ") == 2  # the broken one, and all of CANN's in one line
    *_, advice = text.splitlines()
    assert "ASCEND_CUSTOM_OPP_PATH" in advice
    rebuild = "launched is in the plugin's wheel where that is built with CANN: install the plugin"
    assert (rebuild in advice) == (op == "headers_npu_launched")


def test_query_tells_of_every_launch_without_choosing(machine: Machine) -> None:
    one = machine.put("one", "second")
    machine.put("other", "first")
    code = f"""
before = query_npu_kernels(Path({str(machine.plugin)!r}))
os.environ["ASCEND_CUSTOM_OPP_PATH"] = {str(machine.folder / "other")!r}
assert ops.headers_npu_chosen().startswith("aclnnFirst")
for record in before:
    print(record.op, "/".join(record.symbols), record.symbol, record.library, len(record.searched))
"""
    lines = machine.run(code, "one").splitlines()
    assert lines[0] == f"npu_two aclnnFirst/aclnnSecond aclnnSecond {one} 0"
    assert lines[1].startswith("npu_optional aclnnOptional  None ")
    assert lines[2] == f"npu_launched launched/aclnnSecond aclnnSecond {one} 0"
    assert sorted(line.split()[0] for line in lines[3:]) == ["aclnnFirst", "aclnnKinds"]


def test_missing_and_old_torch_npu_are_reported_when_an_op_launches(machine: Machine) -> None:
    machine.put("custom", "first")
    old = str(machine.libraries["old/libtorch_npu"])
    text = machine.run(
        2 * f"print(failure(ops.headers_npu_first)); ctypes.CDLL({old!r})\n", "custom"
    )
    for words in (
        "torch_npu is not loaded",
        "pip install torch_npu",
        f"the installed torch_npu ({old}) has no ConvertType(at::Tensor)",
        "install torch_npu 2.10 or newer",
    ):
        assert words in text


def test_other_types_are_compile_errors_that_name_them(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cpp"
    given = ("1u", "std::vector<int>{1}", "static_cast<void*>(nullptr)")
    calls = "".join(f"EXEC_NPU_CMD(aclnnFirst, {each});" for each in given)
    source.write_text(f"#include <custom_pypto/npu/launch.h>\nvoid f() {{ {calls} }}\n")
    errors = run_program(*compile_command("-fsyntax-only", source), status=1).stderr
    assert errors.count("error: static assertion failed: ") == 3
    assert errors.count("a launch takes Tensor, RawTensor, int64_t, double") >= 3
    for words in ("Cast another integer to int64_t", "unsigned int", "std::vector<int>", "void*"):
        assert words in errors


def test_functions_of_two_libraries_are_no_kernel(machine: Machine) -> None:
    path = machine.put("custom", "first")
    other = path.rename(path.with_name("first.so"))
    linked = ("-Wl,--no-as-needed", str(other), "-Wl,-rpath,$ORIGIN")
    build("fake_aclnn.cpp", path, "-DNAME=aclnnFirst", "-DHALF", *linked)
    text = machine.run("print(failure(ops.headers_npu_chosen))", "custom")
    assert text.startswith("npu_two: aclnnFirst: the kernel's two functions are in two libraries")
    assert f"aclnnFirstGetWorkspaceSize in {path} and aclnnFirst in " in text
    assert "first.so" in text


KINDS = (
    "int64_t number, double real, bool flag, const char *text, char *maybeText,"
    " const aclIntArray *numbers, const aclFloatArray *reals, const aclBoolArray *flags,"
    " double maybeReal, aclDataType dtype, const aclScalar *scalar,"
    " const aclTensor *absentOptional, const char *literal"
)


def write_header(library: Path, arguments: str = KINDS, name: str = "aclnn_kinds.h") -> Path:
    """Put the header of aclnnKinds into the opp package of a library."""
    header = library.parents[1] / "include" / name
    header.parent.mkdir(exist_ok=True)
    ends = "uint64_t *workspaceSize, aclOpExecutor **executor"
    header.write_text(f"\naclnnStatus aclnnKindsGetWorkspaceSize({arguments}, {ends});\n")
    return header


def compare(machine: Machine, packages: str) -> str:
    """Return the library of aclnnKinds, and what the headers say of it."""
    code = f"""
found = find_kernels(Path({str(machine.plugin)!r}))
[record] = (each for each in found if each.symbols == ("aclnnKinds",))
print(record.library, record.mismatch + record.unchecked)
"""
    return machine.run(code, packages)


def test_a_query_compares_a_launch_with_the_header(machine: Machine) -> None:
    library = machine.put("custom", "kinds")
    folder = library.parents[1] / "include"
    assert compare(machine, "custom") == f"{library} no header in {folder} declares aclnnKinds"
    write_header(library, KINDS.replace("bool flag", "double eps, bool flag"))
    assert "argument 3 of the header, `double eps`, is not passed" in compare(machine, "custom")


def test_one_of_several_declarations_must_fit(machine: Machine) -> None:
    library = machine.put("custom", "kinds")
    write_header(library, "bool flag")
    write_header(library, name="aclnn_kinds_of_another_cann.h")
    assert compare(machine, "custom") == str(library)


def test_a_header_that_everybody_can_write_decides_nothing(machine: Machine) -> None:
    library = machine.put("custom", "kinds")
    header = write_header(library, "bool flag")
    header.chmod(0o666)
    fault = f"{header} can be changed by every user of this machine"
    assert compare(machine, "custom").startswith(f"{library} {fault}")
