"""Which objects a second build compiles again after a change."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from build_project import Project, tiny_project


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A plugin of two sources, of which the first includes a header; built once."""
    made = tiny_project(tmp_path_factory.mktemp("project"))
    made.write("csrc/second.cpp", "int second() { return 2; }\n")
    made.wheel()
    return made


@pytest.fixture
def project(built: Project, tmp_path: Path) -> Iterator[Project]:
    """The same, as it was after that build, and in the same folder."""
    kept, output = tmp_path / "kept", built.output
    shutil.copytree(built.root, kept)
    yield built
    shutil.rmtree(built.root)
    shutil.move(kept, built.root)
    built.output = output


def compiled(project: Project) -> list[str]:
    return [line.split()[1] for line in project.built() if line.startswith("compile ")]


ALL = ["csrc/second.cpp", "csrc/tiny.cpp"]


def test_what_includes_a_changed_header_is_compiled_again(project: Project) -> None:
    header = project.root / "csrc/answer.h"
    # As an editor would, after what was built.
    later = header.stat().st_mtime_ns + 10_000_000_000
    os.utime(header, ns=(later, later))
    project.wheel()
    assert compiled(project) == ["csrc/tiny.cpp"]


def test_nothing_is_built_when_nothing_changed(project: Project) -> None:
    project.wheel()
    assert project.built() == []
    assert "ninja: no work to do." in project.output
    project.hook("build_editable", project.root / "dist")
    assert project.built() == []


def test_all_is_built_with_other_cxxflags(project: Project) -> None:
    project.wheel({"CXXFLAGS": "-O1"})
    assert sorted(compiled(project)) == ALL


def test_a_removed_source_leaves_the_library(project: Project) -> None:
    source = project.write("csrc/third.cpp", 'const char* third() { return "third source"; }\n')
    assert b"third source" in project.wheel().library
    source.unlink()
    assert b"third source" not in project.wheel().library
