"""Inspection reads the files of one plugin on disk."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import AscendcLibrary, Library
from custom_pypto_discovery import discovery, host, ownership
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import Host, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status
from manifests import make_manifest

CONTENTS = b"\x7fELF and the rest"
REINSTALL = "reinstall it: pip install --force-reinstall --no-deps acme-first"
HOST = replace(this_host(), platform="linux_x86_64")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with module, manifest and library, beside its metadata."""
    folder = tmp_path / "acme_first"
    (folder / "lib").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "lib" / "libfirst.so").write_bytes(CONTENTS)
    write_manifest(folder)
    (tmp_path / "acme_first.dist-info").mkdir()
    (tmp_path / "acme_first.dist-info" / "entry_points.txt").touch()
    return folder


def write_manifest(
    folder: Path,
    library: str = "lib/libfirst.so",
    contents: bytes = CONTENTS,
    ascendc: AscendcLibrary | None = None,
) -> None:
    sha256 = hashlib.sha256(contents).hexdigest()
    made = make_manifest(library=Library(library, sha256), ascendc=ascendc)
    made.write(folder / manifest.FILE_NAME)


def installed(package: Path) -> InstalledPlugin:
    metadata = package.parent / "acme_first.dist-info"
    return InstalledPlugin("first", "acme_first", "acme-first", "1.0", package, metadata)


def inspect(package: Path, *, disable: str = "", on: Host = HOST) -> InstalledPlugin:
    settings = Environment(disable=frozenset({disable}))
    return discovery.inspect(installed(package), settings, on)


def rejection(package: Path) -> str:
    found = inspect(package)
    assert found.status is Status.REJECTED
    return found.reason


def test_plugin_with_nothing_wrong_is_accepted_with_its_manifest(package: Path) -> None:
    found = inspect(package)
    assert (found.status, found.reason) == (Status.ACCEPTED, "")
    assert found.families == ("first",)


def test_plugin_that_was_rejected_before_keeps_its_reason(package: Path) -> None:
    broken = replace(installed(package), folder=None).reject("it is broken")
    found = discovery.inspect(broken, Environment(), HOST)
    assert (found.status, found.reason) == (Status.REJECTED, "it is broken")


def test_what_the_manifest_says_is_compared_with_the_host(package: Path) -> None:
    found = inspect(package, on=replace(HOST, platform="linux_aarch64"))
    assert found.reason.startswith("was built for linux_x86_64, but this Python runs on")


# The manifest


def test_missing_manifest_is_the_reason(package: Path) -> None:
    (package / manifest.FILE_NAME).unlink()
    assert rejection(package).startswith("no manifest: ")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_manifest_that_is_a_pipe_or_a_device_is_not_opened(
    package: Path, make: Callable[[Path], None]
) -> None:
    path = package / manifest.FILE_NAME
    path.unlink()
    make(path)
    assert rejection(package) == f"{path}: is not a regular file; {REINSTALL}"


def test_manifest_that_is_huge_is_not_read(package: Path) -> None:
    path = package / manifest.FILE_NAME
    with path.open("r+b") as file:
        file.truncate(1 << 30)
    assert rejection(package) == (
        f"{path}: has 1073741824 bytes, at most 4194304 are read; {REINSTALL}"
    )


# The environment


def test_blocked_plugin_has_the_variable_as_reason_and_its_ops(package: Path) -> None:
    found = inspect(package, disable="first")
    assert found.status is Status.BLOCKED
    assert found.reason.startswith("CUSTOM_PYPTO_DISABLE names it")
    assert found.families == ("first",)


def test_files_of_a_blocked_plugin_are_not_looked_at(package: Path) -> None:
    (package / "lib" / "libfirst.so").unlink()
    assert inspect(package, disable="first").status is Status.BLOCKED


# The library


def test_library_with_another_hash_is_rejected(package: Path) -> None:
    path = package / "lib" / "libfirst.so"
    path.write_bytes(b"other")
    ours, theirs = (hashlib.sha256(each).hexdigest()[:16] for each in (b"other", CONTENTS))
    assert rejection(package) == (
        f"its library {path} is not the one it was built with: sha256 {ours}..., the manifest says"
        f" {theirs}...; {REINSTALL}"
    )


def test_the_library_of_ascendc_kernels_is_checked_too(package: Path) -> None:
    path = package / "lib" / "libfirst_ascendc_dav-2201.so"
    name = path.relative_to(package).as_posix()
    sha256 = hashlib.sha256(CONTENTS).hexdigest()
    write_manifest(package, ascendc=AscendcLibrary(name, sha256, "dav-2201"))
    assert rejection(package) == f"its library {path} is missing; {REINSTALL}"
    path.write_bytes(b"other")
    assert rejection(package).startswith(f"its library {path} is not the one it was built with: ")
    path.write_bytes(CONTENTS)
    assert inspect(package).status is Status.ACCEPTED


@pytest.mark.parametrize("is_one_named", [False, True])
def test_a_library_of_ascendc_kernels_that_the_manifest_does_not_name_is_rejected(
    package: Path, is_one_named: bool
) -> None:
    named, unnamed = (
        package / "lib" / f"libfirst_ascendc_{each}.so" for each in ("dav-2201", "dav-1001")
    )
    if is_one_named:
        named.write_bytes(CONTENTS)
        sha256 = hashlib.sha256(CONTENTS).hexdigest()
        write_manifest(package, ascendc=AscendcLibrary(f"lib/{named.name}", sha256, "dav-2201"))
    unnamed.write_bytes(CONTENTS + b"other")
    assert rejection(package) == (
        f"its package has {unnamed}, a library of AscendC kernels that its manifest does not name;"
        " delete that file"
    )
    unnamed.unlink()
    assert inspect(package).status is Status.ACCEPTED


SPOILED = {
    "missing": (lambda path: None, "is missing; "),
    "folder": (Path.mkdir, "is not a regular file; "),
    "pipe": (os.mkfifo, "is not a regular file; "),
    "link to itself": (lambda path: path.symlink_to(path), "cannot be read: "),
}


@pytest.mark.parametrize(("spoil", "reason"), SPOILED.values(), ids=SPOILED)
def test_library_that_is_no_file_is_rejected(
    package: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    path = package / "lib" / "libfirst.so"
    path.unlink()
    spoil(path)
    found = rejection(package)
    assert found.startswith(f"its library {path} {reason}")
    assert found.endswith(REINSTALL)


def test_link_out_of_the_package_is_rejected(package: Path) -> None:
    elsewhere = package.parent / "libelsewhere.so"
    (package / "lib" / "libfirst.so").rename(elsewhere)
    (package / "lib" / "libfirst.so").symlink_to(elsewhere)
    assert rejection(package) == (
        f"its library lib/libfirst.so leads out of its package, to {elsewhere}; a library must be a"
        f" file of its own package; {REINSTALL}"
    )


def test_linked_folder_that_leads_out_of_the_package_is_rejected(package: Path) -> None:
    (package / "lib").rename(package.parent / "lib")
    (package / "lib").symlink_to(package.parent / "lib")
    assert "leads out of its package" in rejection(package)


def test_package_that_is_a_link_itself_is_accepted(package: Path) -> None:
    link = package.parent / "link"
    link.symlink_to(package)
    assert inspect(link).status is Status.ACCEPTED


# Who may write

EXECUTED = [
    "acme_first",
    "acme_first/__init__.py",
    "acme_first/__pycache__",
    "acme_first/__pycache__/__init__.cpython-311.pyc",
    "acme_first/custom_pypto_plugin.json",
    "acme_first/lib",
    "acme_first/lib/libfirst.so",
    "acme_first/part/deep.py",
    "acme_first.dist-info",
    "acme_first.dist-info/entry_points.txt",
    "acme_first.dist-info/METADATA",
    "acme_first.dist-info/direct_url.json",
    ".",
]


@pytest.mark.parametrize("part", EXECUTED)
def test_what_everybody_may_write_is_rejected(package: Path, part: str) -> None:
    path = package.parent / part
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.touch() if path.suffix else path.mkdir()
    path.chmod(0o777)
    assert rejection(package) == (
        f"{path} can be changed by every user of this machine, who could so run code as you; make"
        f" it safe: chmod o-w {path}"
    )


FOREIGN = ["acme_first", "acme_first/__init__.py", "acme_first.dist-info", "."]


@pytest.mark.parametrize("part", FOREIGN)
def test_what_a_foreign_user_owns_is_rejected(
    package: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    path = package.parent / part
    foreign = path.stat().st_ino
    relied_on = ownership._relied_on

    def owned(plugin: InstalledPlugin) -> list[tuple[str, os.stat_result]]:
        # Only root can give files away.
        return [
            (name, os.stat_result((*status[:4], 1234, *status[5:])))
            if status.st_ino == foreign
            else (name, status)
            for name, status in relied_on(plugin)
        ]

    monkeypatch.setattr(ownership, "_relied_on", owned)
    found = inspect(package, on=replace(HOST, trusted_owners=frozenset({0, os.geteuid()})))
    allowed = ", ".join(map(str, sorted({0, os.geteuid()})))
    assert found.reason == (
        f"{path} belongs to the user id 1234; allowed are {allowed} (root, you, and the owner of"
        f" core's files); {REINSTALL}"
    )


# Links


def _move_library(package: Path) -> None:
    (package / "lib" / "libfirst.so").rename(package / "libmoved.so")
    (package / "lib" / "libfirst.so").symlink_to(package / "libmoved.so")


# What is no danger.
HARMLESS: dict[str, Callable[[Path], object]] = {
    "library behind a link inside the package": _move_library,
    "linked folder inside the package": lambda package: (package / "same").symlink_to("lib"),
    "link to the package": lambda package: (package / "all").symlink_to("."),
    "link to nothing inside the package": lambda p: (p / ".#lock").symlink_to("nowhere"),
    "folder in which nobody replaces the files of others": lambda p: (p / "lib").chmod(0o1777),
    "kernels of another name": lambda p: (p / "lib/libother_ascendc_dav-2201.so").touch(),
    "no library of kernels": lambda p: (p / "lib/libfirst_ascendc_dav-2201.txt").touch(),
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_is_no_danger_is_accepted(package: Path, change: Callable[[Path], object]) -> None:
    change(package)
    assert inspect(package).status is Status.ACCEPTED


def test_file_behind_a_link_that_everybody_may_write_is_rejected(package: Path) -> None:
    target = package.parent / "elsewhere.py"
    target.touch(0o666)
    target.chmod(0o666)
    (package / "module.py").symlink_to(target)
    assert rejection(package).startswith(f"{package / 'module.py'} can be changed by every user")


def test_folder_that_holds_what_a_link_leads_to_is_looked_at(package: Path) -> None:
    holder = package.parent / "elsewhere"
    holder.mkdir()
    (holder / "module.py").touch()
    (package / "module.py").symlink_to(holder / "module.py")
    assert inspect(package).status is Status.ACCEPTED
    holder.chmod(0o777)
    assert rejection(package).startswith(f"{holder} can be changed by every user")


def test_linked_folder_outside_the_package_is_rejected(package: Path) -> None:
    elsewhere = package.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "__init__.py").touch()
    (elsewhere / "__init__.py").chmod(0o666)
    (package / "part").symlink_to(elsewhere)
    assert rejection(package) == (
        f"the folder {package / 'part'} leads out of its package, to {elsewhere}; a folder must be"
        " in its own package: put a copy in place of the link"
    )


def test_folder_that_holds_a_linked_package_is_looked_at(package: Path) -> None:
    holder = package.parent / "elsewhere"
    holder.mkdir()
    package.rename(holder / package.name)
    package.symlink_to(holder / package.name)
    assert inspect(package).status is Status.ACCEPTED
    holder.chmod(0o777)
    assert rejection(package).startswith(f"{holder} can be changed by every user")


def test_pipe_in_the_package_is_rejected(package: Path) -> None:
    os.mkfifo(package / "module.py")
    assert rejection(package) == (
        f"{package / 'module.py'} is neither a file nor a folder; delete it"
    )


def test_package_with_very_deep_folders_is_looked_at(package: Path) -> None:
    deep = os.open(package, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(deep)
    try:
        assert inspect(package).status is Status.ACCEPTED
    finally:
        # pytest would recurse.
        subprocess.run(["rm", "-r", package / "d"], check=True)


@pytest.mark.parametrize("target", ["../nowhere", "/nowhere/late.py", "late.py"])
def test_link_to_nothing_outside_the_package_is_rejected(
    package: Path, tmp_path: Path, target: str
) -> None:
    folder = tmp_path / "outside"
    folder.mkdir()
    (package / "late.py").symlink_to(folder / target)
    found = inspect(package)
    assert found.status is Status.REJECTED
    assert found.reason == (
        f"the link {package}/late.py leads out of its package, to"
        f" {(folder / target).resolve()}, where somebody may put a file; delete the link"
    )


def test_package_without_metadata_folder_is_looked_at(package: Path) -> None:
    (package / "__init__.py").chmod(0o777)
    found = discovery.inspect(replace(installed(package), metadata=None), Environment(), HOST)
    assert found.status is Status.REJECTED


def test_trusted_are_root_this_user_and_the_owner_of_core() -> None:
    core = Path(host.__file__).stat().st_uid
    assert this_host().trusted_owners == {0, os.geteuid(), core}
