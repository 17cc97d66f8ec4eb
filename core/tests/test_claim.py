"""What the files of a candidate say."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import Library, Manifest, Op
from custom_pypto_discovery import claim
from custom_pypto_discovery.candidates import Candidate
from custom_pypto_discovery.claim import LibraryFile

CONTENTS = b"\x7fELF and the rest"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with manifest and library."""
    folder = tmp_path / "acme_first"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "libfirst.so").write_bytes(CONTENTS)
    write_manifest(folder)
    return folder


def write_manifest(folder: Path, library: str = "lib/libfirst.so") -> None:
    Manifest(
        name="first",
        distribution="acme-first",
        version="1.0",
        core_abi=(1, 0),
        torch_target="2.10",
        platform="linux_x86_64",
        ops=(Op("first", "first(Tensor x) -> Tensor"),),
        requires_ops=(),
        library=Library(library, "0" * 64),
    ).write(folder / manifest.FILE_NAME)


def candidate(folder: Path | None, problem: str = "") -> Candidate:
    return Candidate("first", "acme_first", "acme-first", "1.0", folder, problem)


def library_of(folder: Path) -> LibraryFile:
    library = claim.read(candidate(folder)).library
    assert library is not None
    return library


def test_problem_of_the_candidate_is_that_of_the_claim() -> None:
    found = claim.read(candidate(None, "it is broken"))
    assert (found.manifest, found.library, found.problem) == (None, None, "it is broken")


def test_claim_has_the_manifest(package: Path) -> None:
    found = claim.read(candidate(package))
    assert found.manifest is not None
    assert found.manifest.name == "first"


def test_missing_manifest_is_the_problem(package: Path) -> None:
    (package / manifest.FILE_NAME).unlink()
    assert claim.read(candidate(package)).problem.startswith("no manifest: ")


def test_library_has_path_and_hash(package: Path) -> None:
    library = library_of(package)
    assert library.path == package / "lib" / "libfirst.so"
    assert library.sha256 == hashlib.sha256(CONTENTS).hexdigest()


def test_library_can_be_left_alone(package: Path) -> None:
    (package / "lib" / "libfirst.so").unlink()
    assert claim.read(candidate(package), with_library=False).library is None


def test_missing_library_is_a_problem(package: Path) -> None:
    (package / "lib" / "libfirst.so").unlink()
    library = library_of(package)
    assert library.problem == f"its library {package / 'lib' / 'libfirst.so'} is missing"


def test_library_that_is_a_folder_is_a_problem(package: Path) -> None:
    write_manifest(package, "lib")
    assert library_of(package).problem == f"its library {package / 'lib'} is not a file"


def test_library_that_links_to_itself_is_a_problem(package: Path) -> None:
    path = package / "lib" / "libfirst.so"
    path.unlink()
    path.symlink_to(path)
    assert library_of(package).problem.startswith(f"its library {path} cannot be read: ")


def test_link_inside_the_package_is_inside(package: Path) -> None:
    (package / "lib" / "libfirst.so").rename(package / "libmoved.so")
    (package / "lib" / "libfirst.so").symlink_to(package / "libmoved.so")
    library = library_of(package)
    assert library.inside_package
    assert library.path == package / "libmoved.so"


def test_link_out_of_the_package_is_outside(package: Path) -> None:
    elsewhere = package.parent / "libelsewhere.so"
    (package / "lib" / "libfirst.so").rename(elsewhere)
    (package / "lib" / "libfirst.so").symlink_to(elsewhere)
    library = library_of(package)
    assert not library.inside_package
    assert library.path == elsewhere


def test_linked_folder_that_leads_out_of_the_package_is_outside(package: Path) -> None:
    (package / "lib").rename(package.parent / "lib")
    (package / "lib").symlink_to(package.parent / "lib")
    assert not library_of(package).inside_package


def test_package_that_is_a_link_itself_is_inside(package: Path) -> None:
    link = package.parent / "link"
    link.symlink_to(package)
    assert library_of(link).inside_package


def test_library_and_the_folders_to_it_are_guarded(package: Path) -> None:
    guarded = library_of(package).guarded
    assert [file.path for file in guarded] == [
        package / "lib" / "libfirst.so",
        package / "lib",
        package,
    ]
    assert {file.owner for file in guarded} == {os.geteuid()}
    assert not any(file.world_writable for file in guarded)


@pytest.mark.parametrize("part", ["lib/libfirst.so", "lib", ""])
def test_what_everybody_may_write_is_told(package: Path, part: str) -> None:
    (package / part).chmod(0o777)
    writable = [file.path for file in library_of(package).guarded if file.world_writable]
    assert writable == [package / part]


def test_folder_in_which_nobody_replaces_the_files_of_others_is_safe(package: Path) -> None:
    (package / "lib").chmod(0o1777)
    assert not any(file.world_writable for file in library_of(package).guarded)


def test_trusted_are_root_this_user_and_the_owner_of_core() -> None:
    core = Path(claim.__file__).stat().st_uid
    assert claim.trusted_owners() == {0, os.geteuid(), core}
