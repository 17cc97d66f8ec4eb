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
HOST = replace(this_host(), platform="linux_x86_64")
Change = Callable[[Path], object]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with module, manifest and library, beside its metadata and a folder `outside`."""
    folder = tmp_path / "acme_first"
    (folder / "lib").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "lib" / "libfirst.so").write_bytes(CONTENTS)
    write_manifest(folder)
    (tmp_path / "outside").mkdir()
    (tmp_path / "acme_first.dist-info").mkdir()
    (tmp_path / "acme_first.dist-info" / "entry_points.txt").touch()
    return folder


def write_manifest(folder: Path, ascendc: str | None = None) -> None:
    sha256 = hashlib.sha256(CONTENTS).hexdigest()
    made = make_manifest(
        library=Library("lib/libfirst.so", sha256),
        ascendc=ascendc and AscendcLibrary(f"lib/{ascendc}", sha256, "dav-2201"),
    )
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


def test_blocked_plugin_has_the_variable_as_reason_and_its_files_are_not_looked_at(
    package: Path,
) -> None:
    (package / "lib" / "libfirst.so").unlink()
    found = inspect(package, disable="first")
    assert found.status is Status.BLOCKED
    assert found.reason.startswith("CUSTOM_PYPTO_DISABLE names it")
    assert found.families == ("first",)


def in_place_of(name: str, make: Change) -> Change:
    """Return what makes something else of a file or folder of the package."""

    def change(package: Path) -> None:
        (package / name).rename(package.parent / "outside" / "moved")
        make(package / name)

    return change


def _grow(package: Path) -> None:
    os.truncate(package / MANIFEST, 1 << 30)


def _link_file(package: Path) -> Path:
    (target := package.parent / "outside" / "module.py").touch()
    (package / "module.py").symlink_to(target)
    return target


def _move_package(package: Path) -> Path:
    moved = package.rename(package.parent / "outside" / package.name)
    package.symlink_to(moved)
    return moved


def _name_kernels(package: Path, contents: bytes = CONTENTS) -> None:
    (package / "lib/libkernels.so").write_bytes(contents)
    write_manifest(package, "libkernels.so")


MANIFEST, LIBRARY, KERNELS = (
    manifest.FILE_NAME,
    "lib/libfirst.so",
    "lib/libfirst_ascendc_dav-1001.so",
)
OTHER_HASH = (
    f"is not the one it was built with: sha256 {hashlib.sha256(b'other').hexdigest()[:16]}..., the"
    f" manifest says {hashlib.sha256(CONTENTS).hexdigest()[:16]}...; REINSTALL"
)
FOR_ALL = "can be changed by every user of this machine, who could so run code as you"
UNNAMED = (
    f"its package has PACKAGE/{KERNELS}, a library of AscendC kernels that its manifest does not"
)
LEADS_OUT = "leads out of its package, to"
# How the reason of a fault begins, and what is done to the package.
REJECTED: dict[str, Change] = {
    "no manifest: ": in_place_of(MANIFEST, lambda path: None),
    f"PACKAGE/{MANIFEST}: is not a regular file; REINSTALL": in_place_of(MANIFEST, os.mkfifo),
    f"PACKAGE/{MANIFEST}: is not a regular file": in_place_of(
        MANIFEST, lambda path: path.symlink_to("/dev/zero")
    ),
    f"PACKAGE/{MANIFEST}: has 1073741824 bytes, at most 4194304 are read; REINSTALL": _grow,
    f"its library PACKAGE/{LIBRARY} {OTHER_HASH}": lambda package: (package / LIBRARY).write_bytes(
        b"other"
    ),
    f"its library PACKAGE/{LIBRARY} is missing; REINSTALL": in_place_of(LIBRARY, lambda path: None),
    f"its library PACKAGE/{LIBRARY} is not a regular file": in_place_of(LIBRARY, Path.mkdir),
    f"its library PACKAGE/{LIBRARY} is not a regular file; ": in_place_of(LIBRARY, os.mkfifo),
    f"its library PACKAGE/{LIBRARY} cannot be read: ": in_place_of(
        LIBRARY, lambda path: path.symlink_to(path)
    ),
    f"its library {LIBRARY} {LEADS_OUT} OUTSIDE/moved; a library must be a": in_place_of(
        LIBRARY, lambda path: path.symlink_to("../../outside/moved")
    ),
    f"its library {LIBRARY} {LEADS_OUT} OUTSIDE/moved/libfirst.so": in_place_of(
        "lib", lambda path: path.symlink_to("../outside/moved")
    ),
    f"the folder PACKAGE/part {LEADS_OUT} OUTSIDE; a folder must be in its own": lambda package: (
        package / "part"
    ).symlink_to("../outside"),
    "its library PACKAGE/lib/libkernels.so is missing": lambda p: write_manifest(
        p, "libkernels.so"
    ),
    f"its library PACKAGE/lib/libkernels.so {OTHER_HASH}": lambda p: _name_kernels(p, b"other"),
    f"{UNNAMED} name; delete that file": lambda package: (package / KERNELS).touch(),
    f"{UNNAMED} name": lambda p: (_name_kernels(p), (p / KERNELS).touch()),
    f"PACKAGE/module.py {FOR_ALL}": lambda package: _link_file(package).chmod(0o666),
    f"OUTSIDE {FOR_ALL}": lambda package: _link_file(package).parent.chmod(0o777),
    f"OUTSIDE {FOR_ALL}; make it safe": lambda package: _move_package(package).parent.chmod(0o777),
    "PACKAGE/module.py is neither a file nor a folder": lambda p: os.mkfifo(p / "module.py"),
    f"the link PACKAGE/late.py {LEADS_OUT} PARENT/nowhere, where somebody may put a": lambda p: (
        p / "late.py"
    ).symlink_to("../nowhere"),
    f"the link PACKAGE/late.py {LEADS_OUT} /nowhere/late.py": lambda package: (
        package / "late.py"
    ).symlink_to("/nowhere/late.py"),
}


@pytest.mark.parametrize("reason", REJECTED)
def test_package_with_a_fault_is_rejected(package: Path, reason: str) -> None:
    REJECTED[reason](package)
    words = {"PARENT": package.parent, "PACKAGE": package, "OUTSIDE": package.parent / "outside"}
    reinstall = "reinstall it: pip install --force-reinstall --no-deps acme-first"
    for word, text in {**words, "REINSTALL": reinstall}.items():
        reason = reason.replace(word, str(text))
    assert rejection(package).startswith(reason)


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
    assert rejection(package) == f"{path} {FOR_ALL}; make it safe: chmod o-w {path}"


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
    assert found.reason.startswith(
        f"{path} belongs to the user id 1234; allowed are {allowed} (root, you, and the owner of"
        " core's files); reinstall it: "
    )


def test_package_without_metadata_folder_is_looked_at(package: Path) -> None:
    (package / "__init__.py").chmod(0o777)
    found = discovery.inspect(replace(installed(package), metadata=None), Environment(), HOST)
    assert found.status is Status.REJECTED


def test_trusted_are_root_this_user_and_the_owner_of_core() -> None:
    core = Path(host.__file__).stat().st_uid
    assert this_host().trusted_owners == {0, os.geteuid(), core}


# What is no danger


def _move_library(package: Path) -> None:
    (package / "lib" / "libfirst.so").rename(package / "libmoved.so")
    (package / "lib" / "libfirst.so").symlink_to(package / "libmoved.so")


HARMLESS: dict[str, Change] = {
    "library behind a link inside the package": _move_library,
    "linked folder inside the package": lambda package: (package / "same").symlink_to("lib"),
    "link to the package": lambda package: (package / "all").symlink_to("."),
    "link to nothing inside the package": lambda p: (p / ".#lock").symlink_to("nowhere"),
    "link to a file outside": _link_file,
    "package that is a link": _move_package,
    "folder in which nobody replaces the files of others": lambda p: (p / "lib").chmod(0o1777),
    "kernels that the manifest names": _name_kernels,
    "kernels of another name": lambda p: (p / "lib/libother_ascendc_dav-2201.so").touch(),
    "no library of kernels": lambda p: (p / "lib/libfirst_ascendc_dav-2201.txt").touch(),
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_is_no_danger_is_accepted(package: Path, change: Change) -> None:
    change(package)
    assert inspect(package).status is Status.ACCEPTED


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
