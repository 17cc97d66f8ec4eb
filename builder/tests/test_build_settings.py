"""The settings in pyproject.toml are read, or refused with key and advice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from build_project import PYPROJECT, SOURCES, Project, tiny_project
from custom_pypto_build.errors import BuildError
from custom_pypto_build.patterns import SOURCE_SUFFIXES
from custom_pypto_build.settings import KEYS, read_settings, read_simulated_kernels

PAGE = Path(__file__).parents[2] / "docs" / "building.md"


def project(root: Path, table: str = SOURCES) -> Project:
    made = tiny_project(root, table)
    made.write("csrc/cpu/kernel_avx512.cpp", "")
    return made


def refused(root: Path, table: str) -> str:
    project(root, table)
    with pytest.raises(BuildError) as caught:
        read_settings(root)
    return str(caught.value)


def test_every_key_is_read(tmp_path: Path) -> None:
    made = project(
        tmp_path,
        """
        sources = ["csrc/*.cpp", "csrc/cpu/*.cpp", "csrc/**/*.cpp"]
        include-dirs = ["csrc"]
        cxx-flags = ["-O3"]
        opp = "opp"
        requires-ops = ["other.out"]
        [tool.custom-pypto.simulated-kernels]
        stock = ["tests/npu/stock.cpp"]
        custom = ["tests/npu/custom*.cpp", "tests/npu/custom.cpp"]
        """,
    )
    made.write("opp/vendors/config.ini", "")
    for name in ("custom", "custom_2", "stock"):
        made.write(f"tests/npu/{name}.cpp", "")
    settings = read_settings(tmp_path)
    assert settings.name == "tiny"
    assert settings.package == "custom_pypto_tiny"
    assert settings.sources == ("csrc/cpu/kernel_avx512.cpp", "csrc/tiny.cpp")
    assert settings.include_dirs == ("csrc",)
    assert settings.flags == ("-O3",)
    assert settings.opp == "opp"
    assert settings.requires_ops == ("other.out",)
    assert list(settings.simulated_kernels.items()) == [
        ("stock", ("tests/npu/stock.cpp",)),
        ("custom", ("tests/npu/custom.cpp", "tests/npu/custom_2.cpp")),
    ]
    assert settings.simulated_kernels == read_simulated_kernels(tmp_path).simulated_kernels


KERNELS = SOURCES + "[tool.custom-pypto.simulated-kernels]\n"
# The table, and how the error goes on after "tool.custom-pypto".
WRONG = [
    ('source = ["csrc/*.cpp"]', " has no key 'source'; did you mean 'sources'?"),
    (SOURCES + "zzz = 1", " has no key 'zzz'; allowed: sources, include-dirs"),
    (
        'cxx-flags = ["-O3"]',
        ".sources is missing, but tool.custom-pypto.cxx-flags is there; name",
    ),
    ("sources = []", ".sources is empty"),
    ('sources = "csrc/*.cpp"', ".sources must be a list of non-empty strings, got 'csrc/*.cpp'"),
    ("sources = [1]", ".sources[0] must be a non-empty string, got 1"),
    (
        'sources = ["csrc/tinny.cpp"]',
        ".sources: 'csrc/tinny.cpp' matches no file in {root}; did you mean 'csrc/tiny.cpp'?",
    ),
    ('sources = ["csrc/*"]', ".sources: 'csrc/*' matches 'csrc/answer.h'; a source ends in .cpp,"),
    ('sources = ["../*.cpp"]', ".sources: '../*.cpp' must be a path below the folder of"),
    ('sources = ["/a/*.cpp"]', ".sources: '/a/*.cpp' must be a path"),
    (f'sources = ["csrc/{"a" * 256}"]', ".sources: no file has a name as long"),
    (
        'sources = ["csrc/**/*.cpp"]\nisa = { sources = ["csrc/**/*.cpp"] }',
        ".isa.sources matches every one of the sources",
    ),
    (SOURCES + 'include-packages = ["a.b"]', ".include-packages: 'a.b' is not the name of"),
    (
        SOURCES + 'include-dirs = ["crsc"]',
        ".include-dirs: there is no folder 'crsc' in {root}; did you mean 'csrc'?",
    ),
    (
        SOURCES + 'cxx-flags = ["-DTORCH_TARGET_VERSION=0"]',
        ".cxx-flags: '-DTORCH_TARGET_VERSION=0' cannot be set: every plugin",
    ),
    (SOURCES + "opp = 3", ".opp must be a non-empty string, got 3"),
    (SOURCES + 'opp = "oop"', ".opp: there is no folder 'oop' in {root}"),
    (SOURCES + 'opp = "src/custom_pypto_tiny/empty"', ".opp: the folder 'src/custom_pypto_tiny/"),
    (
        SOURCES + 'requires-ops = ["custom_pypto::foo"]',
        ".requires-ops: 'custom_pypto::foo' must be the name of an op as it",
    ),
    (
        SOURCES + 'simulated-kernels = ["csrc/tiny.cpp"]',
        ".simulated-kernels must be a table, got ['csrc/tiny.cpp']",
    ),
    (
        KERNELS + 'custom = "kernel.cpp"',
        ".simulated-kernels.custom must be a list of non-empty strings, got 'kernel.cpp'",
    ),
    (KERNELS + "custom = []", ".simulated-kernels.custom is empty; name"),
    (
        KERNELS + 'custom = ["csrc/tinny.cpp"]',
        ".simulated-kernels.custom: 'csrc/tinny.cpp' matches no file in {root}; did you mean",
    ),
    (
        KERNELS + '"a/b" = ["csrc/tiny.cpp"]',
        ".simulated-kernels: the vendor 'a/b' must be letters, digits, '_' and '-', beginning",
    ),
    (
        KERNELS + 'custom = ["csrc/tiny.cpp"]',
        ".sources and tool.custom-pypto.simulated-kernels both match 'csrc/tiny.cpp': the one is",
    ),
]


@pytest.mark.parametrize(("table", "message"), WRONG)
def test_a_wrong_key_or_value_is_named_with_what_is_allowed(
    tmp_path: Path, table: str, message: str
) -> None:
    (tmp_path / "src/custom_pypto_tiny/empty").mkdir(parents=True)
    expected = f"pyproject.toml: tool.custom-pypto{message.format(root=tmp_path)}"
    assert refused(tmp_path, table).startswith(expected)


def test_what_is_no_toml_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, SOURCES + "opp = ").startswith("pyproject.toml: Invalid value")


def test_a_missing_table_is_named_with_an_example(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.write("pyproject.toml", PYPROJECT.replace("[tool.custom-pypto]", ""))
    with pytest.raises(BuildError, match=re.escape("the table [tool.custom-pypto] is missing")):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('tiny = "custom_pypto_tiny"', "", "must have exactly one entry, the plugin's name and"),
        (
            'tiny = "custom_pypto_tiny"',
            'a = "a"\nb = "b"',
            "must have exactly one entry, the plugin's name and its module, got 2",
        ),
        ("custom_pypto.plugins", "custom-pypto.plugin", "did you mean 'custom-pypto.plugin'?"),
        ("tiny = ", "Tiny = ", "the plugin's name must be lower case letters"),
        ('"custom_pypto_tiny"', '"custom_pypto_tiny:plugin"', "tiny must name a module"),
        (
            '[project.entry-points."custom_pypto.plugins"]',
            '[project.entry-points]\n"custom_pypto.plugins" = 3\n[ignored]',
            "custom_pypto.plugins must be a table, got 3",
        ),
    ],
)
def test_a_wrong_entry_point_is_explained(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    made = project(tmp_path)
    assert before in PYPROJECT
    made.write("pyproject.toml", PYPROJECT.replace(before, after) + SOURCES)
    with pytest.raises(BuildError, match=re.escape(message)):
        read_settings(tmp_path)


def test_a_module_inside_a_package_belongs_to_the_top_level_package(tmp_path: Path) -> None:
    made = project(tmp_path)
    made.write("pyproject.toml", PYPROJECT.replace('tiny"', 'tiny.plugin"') + SOURCES)
    assert read_settings(tmp_path).package == "custom_pypto_tiny"


@pytest.mark.parametrize("word", [*KEYS, *SOURCE_SUFFIXES])
def test_every_accepted_key_and_value_is_documented(word: str) -> None:
    assert f"`{word}`" in PAGE.read_text(encoding="utf-8")


def test_a_project_may_hold_simulated_kernels_and_nothing_else(tmp_path: Path) -> None:
    made = Project(tmp_path)
    made.write("kernel.cpp", "")
    made.write("pyproject.toml", '[tool.custom-pypto.simulated-kernels]\nmine = ["*.cpp"]\n')
    assert read_simulated_kernels(tmp_path).simulated_kernels == {"mine": ("kernel.cpp",)}


def test_simulated_kernels_that_are_not_named_are_an_error(tmp_path: Path) -> None:
    project(tmp_path)
    message = (
        "pyproject.toml: tool.custom-pypto.simulated-kernels names no simulated kernels; name the"
        ' C++ files of each vendor, such as custom = ["tests/npu/custom.cpp"]'
    )
    with pytest.raises(BuildError, match=re.escape(message)):
        read_simulated_kernels(tmp_path)
