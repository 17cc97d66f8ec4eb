"""Editable builds: the module in the source tree, library and manifest beside it."""

import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest
from build_project import SOURCES, BuildFailedError, Project
from custom_pypto_contract import manifest, platforms
from programs import run_python

MODULE = "src/custom_pypto_tiny/__init__.py"


@pytest.fixture
def project(project: Project) -> Project:
    project.configure(SOURCES + 'opp = "opp"\n')
    project.write("opp/vendors/config.ini", "load_priority=tiny\n")
    return project


def install(project: Project, mode: str = "lenient") -> Path:
    """Build and unpack an editable wheel as pip does; gives the folder it is installed in."""
    dist = project.root / "dist"
    wheel = dist / project.hook("build_editable", dist, {"editable_mode": mode})
    site = project.root.parent / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def package(site: Path) -> Path:
    """The folder in which a process that has `site` finds the plugin's package, unimported."""
    code = (
        "import site, sys, importlib.util; site.addsitedir(sys.argv[1]);"
        "print(importlib.util.find_spec('custom_pypto_tiny').submodule_search_locations[0])"
    )
    return Path(run_python("-c", code, site).stdout.strip())


@pytest.mark.parametrize("mode", ["lenient", "strict"])
def test_module_library_and_opp_folder_are_found_together(project: Project, mode: str) -> None:
    folder = package(install(project, mode))
    [wheel] = (project.root / "dist").iterdir()
    assert wheel.name.endswith(f"-py3-none-{platforms.platform_tag()}.whl")
    assert (folder / "__init__.py").samefile(project.root / MODULE)
    described = manifest.read(folder / manifest.FILE_NAME)
    library = folder / described.library.path
    assert hashlib.sha256(library.read_bytes()).hexdigest() == described.library.sha256
    assert (folder / "opp/vendors/config.ini").read_text() == "load_priority=tiny\n"


def test_the_opp_folder_is_linked_and_the_library_replaced(project: Project) -> None:
    folder = package(install(project))
    project.write("opp/new.ini", "")
    assert (folder / "opp/new.ini").is_file()
    library = folder / "lib/libcustom_pypto_tiny.so"
    # A process that has it loaded keeps the old file.
    with library.open("rb") as loaded:
        before = loaded.read()
        project.write("csrc/more.cpp", "int more() { return 1; }\n")
        install(project)
        loaded.seek(0)
        assert loaded.read() == before
    assert library.read_bytes() != before


def test_an_opp_folder_inside_the_package_stays_as_it_is(project: Project) -> None:
    project.configure(SOURCES + 'opp = "src/custom_pypto_tiny/opp"\n')
    file = project.write("src/custom_pypto_tiny/opp/inner.ini", "")
    folder = package(install(project))
    assert (folder / "opp/inner.ini").samefile(file)
    assert not (folder / "opp").is_symlink()


def test_something_in_the_place_of_the_opp_link_is_not_overwritten(project: Project) -> None:
    file = project.write("src/custom_pypto_tiny/opp/own.py", "")
    with pytest.raises(BuildFailedError, match=r"error: .*/opp is in the way: an editable install"):
        install(project)
    assert file.is_file()


def test_a_project_without_python_can_be_editable(project: Project) -> None:
    shutil.rmtree(project.root / "src")
    assert (package(install(project)) / manifest.FILE_NAME).is_file()


def test_a_package_beside_pyproject_is_found(project: Project) -> None:
    project.configure(SOURCES)
    (project.root / "src/custom_pypto_tiny").rename(project.root / "custom_pypto_tiny")
    (project.root / "src").rmdir()
    project.write(
        "pyproject.toml",
        (project.root / "pyproject.toml").read_text()
        + '[tool.setuptools]\npackages = ["custom_pypto_tiny"]\n',
    )
    folder = package(install(project))
    assert folder == project.root / "custom_pypto_tiny"
    assert (folder / manifest.FILE_NAME).is_file()
