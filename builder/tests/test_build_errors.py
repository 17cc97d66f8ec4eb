"""Errors of builds: missing requirements, and code that does not compile."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from build_project import (
    OPS,
    PLUGIN_CPP,
    PYPROJECT,
    SOURCES,
    BuildFailedError,
    Project,
    found_first,
)
from custom_pypto_build.compiler import core_include
from custom_pypto_contract import platforms, variables

MACHINE = platforms.machine(platforms.platform_tag())


def failure(project: Project, **env: str) -> str:
    """Return the error of a wheel that cannot be built; it is never a Python traceback."""
    with pytest.raises(BuildFailedError) as caught:
        project.wheel(env)
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


def path_with(root: Path, *names: str) -> str:
    """A PATH on which only these programs are."""
    folder = root / "path"
    folder.mkdir()
    for name in names:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


Change = Callable[[Project], dict[str, str]]
INCLUDING_BLOCKS = SOURCES + 'include-packages = ["custom_pypto_blocks"]\n'


def with_torch(minor: int, missing: str = "") -> Change:
    """Have the build find a torch 2, without one of the files that it needs."""
    version = f"#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR {minor}\n"

    def change(project: Project) -> dict[str, str]:
        project.write("torch/include/torch/headeronly/version.h", version)
        for file in ("include/torch/csrc/stable/library.h", "lib/libtorch_cpu.so"):
            project.write(f"torch/{file}", "")
        for file in (project.root / "torch").rglob(missing) if missing else ():
            file.unlink()
        return {variables.TORCH_DIR: str(project.root / "torch")}

    return change


def without_ninja(project: Project) -> dict[str, str]:
    module = project.write(
        "site/sitecustomize.py",
        "import sysconfig\nsysconfig.get_path = lambda *_, get=sysconfig.get_path, **__:"
        " '/nowhere' if _ == ('scripts',) else get(*_, **__)\n",
    )
    return {"PATH": path_with(project.root, "g++"), **found_first(module.parent)}


def without_package(name: str, table: str = SOURCES) -> Change:
    """Have the build find none of this name, and `table` in pyproject.toml."""

    def change(project: Project) -> dict[str, str]:
        project.configure(table)
        module = project.write(
            "site/sitecustomize.py",
            "from custom_pypto_build import installed\n"
            f"find, name = installed.find_package, {name!r}\n"
            "installed.find_package = lambda each: None if each == name else find(each)\n",
        )
        return found_first(module.parent)

    return change


def variable(name: str, value: str) -> Change:
    return lambda project: {name: value}


def file(path: str, text: str) -> Change:
    return lambda project: project.write(path, text) and {}


def more_ops(argument: str) -> Change:
    return file("ops.toml", f'{OPS}\n[more]\nschema = "more(Tensor {argument}) -> Tensor"\n')


OTHER = "aarch64" if MACHINE != "aarch64" else "x86_64"
MACRO = (
    "error: ops.toml: [more] the argument '{0}' would be ops::more::Arguments::{0}, and {0} is a"
    " macro of a header or a flag of the compiler; call it otherwise"
)
FAILED = "error: compiling or linking the plugin failed"
# What is changed of a project, or of the environment, and regular expressions of the error's text.
ERRORS: dict[str, tuple[Change, list[str]]] = {
    "torch that is not there": (
        variable(variables.TORCH_DIR, "/nowhere/torch"),
        ["PyTorch's headers were not found; looked for\n  /nowhere/torch\n", "Install torch >= 2"],
    ),
    "torch that is too old": (
        with_torch(9), ["error: torch 2.9 in .* is too old", "install torch >= 2.10 and build agai"]
    ),
    **{
        f"torch without {file}": (
            with_torch(13, file), [f"error: torch in .* is too old, or incomplete: .*/{file} is mi"]
        )
        for file in ("version.h", "library.h", "libtorch_cpu.so")
    },
    "no core": (
        without_package("custom_pypto"),
        [
            "error: core's C.. headers were not found; looked for\n  the package custom_pypto of",
            "Install custom-pypto-core in the environment that the plugin is built for.",
        ],
    ),
    "no blocks": (
        without_package("custom_pypto_blocks", INCLUDING_BLOCKS),
        [
            "error: the C.. headers of the package custom_pypto_blocks were not found; looked for",
            r"it .in a clone of the project, `pip install --no-build-isolation ./blocks`. in the e",
        ],
    ),
    "compiler that is not there": (
        variable("CXX", "no-such-compiler -m64"), ["error: the C.. compiler 'no-such-compiler', wh"]
    ),
    "no compiler": (
        lambda project: {"PATH": path_with(project.root, "ninja")}, ["no C.. compiler was found on"]
    ),
    "flags that a shell could not split": (
        variable("CXXFLAGS", "-DA='1"), ['error: CXXFLAGS="-DA=\'1": No closing quotation']
    ),
    "ninja that is not there": (
        without_ninja, ["error: ninja was not found; install it with `pip install ninja`"]
    ),
    **{
        f"MAX_JOBS={jobs}": (
            variable("MAX_JOBS", jobs), [f"error: MAX_JOBS must be a positive number, got '{jobs}'"]
        )
        for jobs in ("0", "many")
    },
    "code that does not compile": (
        file("csrc/wrong.cpp", "int f() { return missing; }\n"),
        [r"csrc/wrong\.cpp:1:\d+: error: .*missing", f"{FAILED}; the compiler's output is above"],
    ),
    "header of a package that pyproject.toml does not name": (
        file("csrc/wrong.cpp", "#include <custom_pypto_blocks/elementwise.h>\n"),
        [
            f"{FAILED}; .* FAILED. wrong.cpp includes headers of custom_pypto_blocks: in pyproject",
            r'write include-packages = \["custom_pypto_blocks"\] in \[tool.custom-pypto\], and',
            r"name custom-pypto-blocks in requires of \[build-system\]",
        ],
    ),
    "undefined symbol": (
        file("csrc/wrong.cpp", "int missing();\nint f() { return missing(); }\n"),
        [r"undefined reference to `missing\(\)'", FAILED],
    ),
    "no contract": (
        lambda project: (project.root / "ops.toml").unlink() or {},
        ["ops.toml is missing; it describes the plugin's ops"],
    ),
    "name that is a macro": (more_ops("INT_MAX"), [re.escape(MACRO.format("INT_MAX"))]),
    "name that is a flag": (
        lambda project: more_ops("ROWS")(project) or {"CXXFLAGS": "-DROWS=3"},
        [re.escape(MACRO.format("ROWS"))],
    ),
    "op that requires itself": (
        lambda project: project.configure(SOURCES + 'requires-ops = ["tiny"]\n') or {},
        ["error: the plugin's manifest would not be valid: 'requires_ops' names"],
    ),
    "entry point that names no package": (
        file("pyproject.toml", PYPROJECT.replace('"custom_pypto_t', '"custom_pypto_tt') + SOURCES),
        [
            "names the package 'custom_pypto_ttiny', but the distribution's packages are",
            r"\['custom_pypto_tiny'\]; write src/custom_pypto_ttiny/__init__.py or correct",
        ],
    ),
    "setup.py": (
        file("setup.py", ""),
        ["error: setup.py would be ignored: custom_pypto_build builds a plugin from"],
    ),
    "compiler for another machine": (
        variable("_PYTHON_HOST_PLATFORM", f"linux-{OTHER}"),
        [
            f"error: the compiler built for {MACHINE}, but the wheel is for {OTHER}",
            f"set _PYTHON_HOST_PLATFORM=linux-{MACHINE}",
        ],
    ),
    "library that records no core ABI": (
        file("csrc/tiny.cpp", PLUGIN_CPP.replace("CUSTOM_PYPTO_RECORD_ABI", "")),
        ["does not record the core ABI that it was compiled for; register its ops with CUSTOM_"],
    ),
    "another system": (
        variable("_PYTHON_HOST_PLATFORM", "macosx-14.0-arm64"),
        ["error: plugins are built for Linux, this is macosx_14_0_arm64"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "messages"), ERRORS.values(), ids=ERRORS)
def test_the_error_of_a_build_says_what_is_wrong(
    project: Project, change: Change, messages: list[str]
) -> None:
    error = failure(project, **change(project))
    for message in messages:
        assert re.search(message, error)


def test_setuptools_that_is_too_old(project: Project, tmp_path: Path) -> None:
    metadata = tmp_path / "old" / "setuptools-65.5.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: setuptools\nVersion: 65.5.0\n")
    message = failure(project, **found_first(tmp_path / "old"))
    assert message.startswith("error: building a plugin needs setuptools>=77; install it, or build")


def test_versions_are_compared_as_numbers(project: Project) -> None:
    project.wheel(with_torch(100)(project))


@pytest.fixture
def with_headers_of_abi_1_2(project: Project) -> Project:
    """Compile with an abi.h that an older or newer core would have."""
    own = (core_include() / "custom_pypto/abi.h").read_text(encoding="utf-8")
    other = re.sub(r"(#define CUSTOM_PYPTO_ABI_MINOR) .*", r"\1 2", own)
    assert other != own
    # A folder of its own: ccache does not see that a header came before the one that it knows.
    project.write("of_another_core/custom_pypto/abi.h", other)
    project.configure(SOURCES + 'include-dirs = ["of_another_core"]\n')
    return project


def test_headers_of_a_newer_core_than_the_builder_knows(with_headers_of_abi_1_2: Project) -> None:
    assert (
        "error: the headers of custom-pypto-core have the core ABI 1.2, but this"
        " custom-pypto-build knows 1.0; install the versions of both that belong together: in"
        " a clone of the project, `pip install --no-build-isolation ./builder ./core`"
    ) in failure(with_headers_of_abi_1_2)


def test_the_core_abi_of_the_manifest_is_that_of_the_headers(
    with_headers_of_abi_1_2: Project,
) -> None:
    # Python runs this file when it starts.
    newer = with_headers_of_abi_1_2.write(
        "newer/sitecustomize.py", "from custom_pypto_contract import abi\nabi.CORE_ABI = (1, 3)\n"
    )
    assert with_headers_of_abi_1_2.wheel(found_first(newer.parent)).manifest["core_abi"] == [1, 2]
