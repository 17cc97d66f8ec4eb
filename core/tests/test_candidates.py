"""Finding plugins by their metadata, with nothing imported."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from custom_pypto_contract.manifest import FILE_NAME, GROUP
from custom_pypto_discovery import candidates, distributions
from custom_pypto_discovery.installed_plugin import InstalledPlugin, delete
from manifests import make_manifest

MODULE_THAT_MUST_NOT_RUN = "raise AssertionError('imported')\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on `sys.path`."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The two folders on `sys.path`."""
    made = (tmp_path / "one", tmp_path / "two")
    monkeypatch.setattr(sys, "path", list(map(str, made)))
    return made


FIRST = ("first", "acme_first", "acme-first", "1.0")
"""Name, module, distribution and version of what `install` installs."""


def install(
    folder: Path,
    name: str = "first",
    *,
    entry_points: str | None = None,
    metadata: str | None = None,
    package: bool = True,
    version: str = "1.0",
) -> Path:
    """Write what pip would leave of a plugin, except for its library; return its metadata."""
    dist_info = folder / f"acme_{name}-{version}.dist-info"
    dist_info.mkdir(parents=True)
    if metadata is None:
        metadata = (
            f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: {version}\n\nName: of the README\n"
        )
    if entry_points is None:
        entry_points = f"[{GROUP}]\n{name} = acme_{name}\n"
    (dist_info / "METADATA").write_text(metadata, encoding="utf-8")
    (dist_info / "entry_points.txt").write_text(entry_points, encoding="utf-8")
    if package:
        module = folder / f"acme_{name}"
        module.mkdir()
        (module / "__init__.py").write_text(MODULE_THAT_MUST_NOT_RUN, encoding="utf-8")
        make_manifest(version=version).write(module / FILE_NAME)
    return dist_info


def only() -> InstalledPlugin:
    (found,) = candidates.find()
    return found


def test_candidate_has_name_module_distribution_version_and_folder(folder: Path) -> None:
    assert candidates.find() == ()
    metadata = install(folder)
    assert only() == InstalledPlugin(*FIRST, folder / "acme_first", metadata)
    assert "acme_first" not in sys.modules


def test_distribution_without_the_entry_point_is_no_candidate(folder: Path) -> None:
    install(folder, entry_points="[console_scripts]\nfirst = acme_first:main\n")
    assert candidates.find() == ()


def test_order_is_that_of_the_distributions_names(folder: Path) -> None:
    for name in ("second", "first", "third"):
        install(folder, name)
    assert [found.name for found in candidates.find()] == ["first", "second", "third"]


def test_folder_is_that_of_the_top_level_package(folder: Path) -> None:
    install(folder, entry_points=f"[{GROUP}]\nfirst = acme_first.hooks.all\n")
    assert (only().module, only().folder) == ("acme_first.hooks.all", folder / "acme_first")


@pytest.fixture(params=[False, True], ids=["listed-up", "listed-down"])
def _listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order in which the file system lists a folder, which is any."""
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda *path: sorted(listdir(*path), reverse=request.param))


LEFTOVERS = {
    "whole": None,
    "no-entry-points": ("entry_points.txt",),
    "no-version": ("METADATA",),
    "empty": ("entry_points.txt", "METADATA"),
}


@pytest.mark.usefixtures("_listing")
@pytest.mark.parametrize("missing", LEFTOVERS.values(), ids=LEFTOVERS)
def test_metadata_left_over_of_another_version_does_not_hide_the_plugin(
    folder: Path, missing: tuple[str, ...] | None
) -> None:
    leftover = install(folder, package=False, version="0.9")
    for name in missing or ():
        (leftover / name).unlink()
    metadata = install(folder)
    assert only() == InstalledPlugin(*FIRST, folder / "acme_first", metadata)


@pytest.mark.usefixtures("_listing")
def test_the_older_metadata_counts_where_the_files_are_older(folder: Path) -> None:
    install(folder, package=False, version="1.1")
    install(folder)
    assert only().version == "1.0"


def test_metadata_without_a_package_does_not_hide_the_plugin_of_a_later_folder(
    folders: tuple[Path, Path],
) -> None:
    install(folders[0], package=False, version="0.9")
    install(folders[1])
    assert (only().folder, only().version) == (folders[1] / "acme_first", "1.0")


def test_of_one_distribution_on_two_paths_the_first_counts(folders: tuple[Path, Path]) -> None:
    install(folders[0])
    install(folders[1], version="0.9")
    assert (only().folder, only().version) == (folders[0] / "acme_first", "1.0")
    assert only().reason == ""


def test_what_an_interrupted_pip_left_is_no_plugin(folder: Path) -> None:
    install(folder)
    shutil.copytree(folder / "acme_first-1.0.dist-info", folder / "~cme_first-0.9.dist-info")
    assert only().distribution == "acme-first"


def test_package_beside_other_metadata_is_an_editable_installation(
    folders: tuple[Path, Path],
) -> None:
    site, sources = folders
    install(site, package=False)
    install(sources, entry_points="")
    assert only().folder == sources / "acme_first"


def test_broken_metadata_of_another_distribution_does_not_hide_plugins(folder: Path) -> None:
    install(folder)
    install(folder, "broken", entry_points="[console_scripts\nno equals sign here\n")
    assert [found.name for found in candidates.find() if not found.reason] == ["first"]


def _shadow(folder: Path, file: str) -> None:
    install(folder / "site")
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(MODULE_THAT_MUST_NOT_RUN)


NO_MODULE = "it must name a module, such as 'custom_pypto_add_custom'"
SHADOWED = "another module called 'acme_first', FOLDER/acme_first"
# How the reason begins, and what is in a folder before `site` and after it.
PROBLEMS: dict[str, Callable[[Path], object]] = {
    "its metadata gives no version; DELETE, and reinstall it: pip install --force-reinstall"
    " --no-deps acme-first": lambda folder: install(folder, metadata="Name: acme-first\n"),
    "its metadata gives no name; DELETE, and reinstall it: pip install --force-reinstall --no-deps"
    " acme_first": lambda folder: install(folder, metadata=""),
    "its metadata cannot be read: UnsuitableFileError: is no": lambda folder: (
        install(folder) / "METADATA"
    ).write_bytes(b"\xff\xfe\x00"),
    **{
        f"the entry point 'first' in the group {GROUP!r} names {value!r}; {NO_MODULE}": (
            lambda folder, value=value: install(
                folder, entry_points=f"[{GROUP}]\nfirst = {value}\n"
            )
        )
        for value in ("acme-first", "acme_first:plugin", "1st", ".acme_first")
    },
    f"the entry point 'first' in the group {GROUP!r} names ''; {NO_MODULE}": lambda folder: install(
        folder, entry_points=f"[other]\nx = y\n[{GROUP}]\n# no value\nfirst\n\n[more]\nz=a\n"
    ),
    "its package 'acme_first' is not installed; reinstall it: pip install --force-reinstall"
    " --no-deps acme-first": lambda folder: install(folder, package=False),
    f"{SHADOWED}, comes before the plugin's package, which is FOLDER/site/acme_first; rename or"
    " remove that module, or": lambda folder: _shadow(folder, "acme_first/__init__.py"),
    f"{SHADOWED}.py, comes before": lambda folder: _shadow(folder, "acme_first.py"),
}


@pytest.mark.parametrize("reason", PROBLEMS)
def test_what_is_wrong_with_a_plugin_is_a_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(sys, "path", [str(folder), str(folder / "site")])
    PROBLEMS[reason](folder)
    words = {"FOLDER": str(folder), "DELETE": delete(folder / "acme_first-1.0.dist-info")}
    for word, text in words.items():
        reason = reason.replace(word, text)
    assert only().reason.startswith(reason)


def test_package_that_this_user_may_not_look_into_has_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(folder)

    def forbidden(self: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(self))

    # Not chmod: root, as whom CI runs, may look into every folder.
    monkeypatch.setattr(Path, "is_file", forbidden)
    assert (only().folder, only().reason) == (folder / "acme_first", "")


def test_module_without_spec_in_its_place_is_a_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(folder)
    monkeypatch.setitem(sys.modules, "acme_first", ModuleType("acme_first"))
    assert only().reason.startswith("its package 'acme_first' cannot be looked up: ValueError: ")


def test_finder_of_somebody_else_that_raises_hides_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def find_distributions(self, context: object) -> None:
            raise RuntimeError("not today")

        def find_spec(self, name: str, path: object, target: object = None) -> None:
            return None

    install(folder)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    assert only().reason == ""


ENDLESS = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": os.mkdir,
    "sparse file": lambda path: (path.touch(), os.truncate(path, 1 << 33)),
}


@pytest.mark.parametrize("make", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("file", ["METADATA", "entry_points.txt"])
def test_metadata_that_never_ends_is_not_read(
    folder: Path, make: Callable[[Path], None], file: str
) -> None:
    install(folder)
    spoilt = install(folder, package=False, version="0.9") / file
    spoilt.unlink(missing_ok=True)
    make(spoilt)
    # A distribution of somebody else.
    (folder / "other-1.0.dist-info").mkdir()
    make(folder / "other-1.0.dist-info" / file)
    assert (only().version, only().reason) == ("1.0", "")


@pytest.mark.parametrize("make", ENDLESS.values(), ids=ENDLESS)
def test_own_metadata_that_never_ends_is_a_problem(
    folder: Path, make: Callable[[Path], None]
) -> None:
    metadata = install(folder) / "METADATA"
    metadata.unlink()
    make(metadata)
    assert only().reason.startswith("its metadata cannot be read: UnsuitableFileError: ")
    assert distributions.version("acme-first") == ""


def test_manifest_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    # Where there are two versions, the manifest says which of them the package is of.
    install(folder)
    install(folder, package=False, version="0.9")
    manifest = folder / "acme_first" / FILE_NAME
    manifest.unlink()
    os.mkfifo(manifest)
    assert only().folder == folder / "acme_first"
