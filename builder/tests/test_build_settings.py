"""The settings in pyproject.toml are read, or refused with key and advice."""

import re
from pathlib import Path

import pytest
from build_project import PYPROJECT, SOURCES, Project, tiny_project
from custom_pypto_build.errors import BuildError
from custom_pypto_build.settings import KEYS, SOURCE_SUFFIXES, read_settings

REFUSED = Path(__file__).with_name("settings_refused.txt")
PAGE = Path(__file__).parents[2] / "docs" / "building.md"


def project(root: Path, table: str = SOURCES) -> Project:
    made = tiny_project(root, table)
    made.write("csrc/cpu/kernel_avx512.cpp", "")
    return made


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
    assert settings.simulated_kernels == read_settings(tmp_path, is_plugin=False).simulated_kernels


PARAGRAPHS = REFUSED.read_text(encoding="utf-8").split("\n\n")[1:]


@pytest.mark.parametrize("paragraph", PARAGRAPHS)
def test_a_wrong_key_or_value_is_named_with_what_is_allowed(tmp_path: Path, paragraph: str) -> None:
    table, error = paragraph.rstrip("\n").replace("<root>", str(tmp_path)).split("\n! ")
    (tmp_path / "src/custom_pypto_tiny/empty").mkdir(parents=True)
    project(tmp_path, table)
    with pytest.raises(BuildError) as caught:
        read_settings(tmp_path)
    found = str(caught.value)
    # What is no TOML is said in the words of Python's version.
    assert found == error or (error.endswith("...") and found.startswith(error[:-3]))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('tiny = "custom_pypto_tiny"', "", "must have exactly one entry, the plugin's name and"),
        ("custom_pypto.plugins", "custom-pypto.plugin", "did you mean 'custom-pypto.plugin'?"),
        ("tiny = ", "Tiny = ", "the plugin's name must be lower case letters"),
        ('"custom_pypto_tiny"', '"custom_pypto_tiny:plugin"', "tiny must be the name of a module"),
        ("[tool.custom-pypto]", "[tool]", "the table [tool.custom-pypto] is missing; it describes"),
    ],
)
def test_a_wrong_entry_point_or_a_missing_table_is_explained(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    made = project(tmp_path)
    assert before in PYPROJECT
    made.write("pyproject.toml", PYPROJECT.replace(before, after) + SOURCES)
    with pytest.raises(BuildError, match=re.escape(message)):
        read_settings(tmp_path)


def test_a_module_inside_a_package_belongs_to_the_top_level_package(tmp_path: Path) -> None:
    project(tmp_path).write("pyproject.toml", PYPROJECT.replace('tiny"', 'tiny.plugin"') + SOURCES)
    assert read_settings(tmp_path).package == "custom_pypto_tiny"


@pytest.mark.parametrize("word", [*KEYS, *SOURCE_SUFFIXES])
def test_every_accepted_key_and_value_is_documented(word: str) -> None:
    assert f"`{word}`" in PAGE.read_text(encoding="utf-8")


def test_a_project_may_hold_simulated_kernels_and_nothing_else(tmp_path: Path) -> None:
    made = Project(tmp_path)
    made.write("kernel.cpp", "")
    made.write("pyproject.toml", '[tool.custom-pypto.simulated-kernels]\n3d-mine = ["*.cpp"]\n')
    settings = read_settings(tmp_path, is_plugin=False)
    assert settings.simulated_kernels == {"3d-mine": ("kernel.cpp",)}
