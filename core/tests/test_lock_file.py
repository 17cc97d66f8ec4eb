"""The lock file: what it allows, and that nothing loads where it cannot be used."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from custom_pypto_contract import manifest
from custom_pypto_discovery import discovery, lock_file
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status
from loading import REPORT
from manifests import make_manifest
from plugin_factory import Site, link

TRUSTED = this_host().trusted_owners
HOST = replace(this_host(), platform="linux_x86_64")

Spoil = Callable[[Path], object]


@pytest.fixture
def plugin(tmp_path: Path) -> InstalledPlugin:
    """An installed plugin whose kernels are Python."""
    folder = tmp_path / "acme_first"
    (folder / "inner" / "__pycache__").mkdir(parents=True)
    (folder / "__init__.py").write_text("one = 1\n")
    (folder / "inner" / "__init__.py").touch()
    made = make_manifest(library=None, platform=manifest.ANY_PLATFORM)
    made.write(folder / manifest.FILE_NAME)
    return InstalledPlugin("first", "acme_first", "Acme.First", "1.0", folder, manifest=made)


@pytest.fixture
def lock_path(tmp_path: Path, plugin: InstalledPlugin) -> Path:
    """A lock file that allows the plugin as it is."""
    path = tmp_path / "ops.lock"
    path.write_text(lock_file.text_of([lock_file.describe(plugin)]))
    return path


INSTEAD = "; install what it allows: pip install --force-reinstall --no-deps acme-first==1.0; or"
ALLOWS = "the lock file LOCK allows "
FILES = f"{ALLOWS}a package whose files have the sha256 "
ANY = manifest.ANY_PLATFORM
# A change of the plugin or of its folder, and how the reason begins, if there is one.
CHANGES: list[tuple[dict[str, str] | Spoil, str]] = [
    ({}, ""),
    (
        {"name": "second", "distribution": "acme-second"},
        (
            "is not in the lock file LOCK, which allows first; pip uninstall acme-second, or lock"
            " what is installed: custom-pypto lock LOCK"
        ),
    ),
    (
        {"distribution": "acme-other"},
        f"{ALLOWS}the distribution acme-first, installed is acme-other{INSTEAD}",
    ),
    ({"distribution": "ACME_First"}, ""),
    ({"version": "1.1"}, f"{ALLOWS}the version 1.0, installed is 1.1{INSTEAD}"),
    ({"module": "acme_first.a"}, f"{ALLOWS}the module acme_first, installed is acme_first.a"),
    (
        lambda folder: make_manifest(library=None, platform=ANY, opp="opp").write(
            folder / manifest.FILE_NAME
        ),
        f"{ALLOWS}a manifest with sha256 ",
    ),
    (lambda folder: (folder / "more.py").touch(), FILES),
    (lambda folder: (folder / "inner/__init__.py").unlink(), FILES),
    (lambda folder: (folder / "__init__.py").write_text("one = 2\n"), FILES),
    (lambda folder: (folder / "inner").rename(folder / "other"), FILES),
    (lambda folder: (folder / "linked").symlink_to("inner"), FILES),
    (lambda folder: (folder / "inner/__pycache__/__init__.cpython-314.pyc").touch(), ""),
]


@pytest.mark.parametrize(("change", "reason"), CHANGES)
def test_what_differs_from_the_lock_is_refused(
    lock_path: Path, plugin: InstalledPlugin, change: dict[str, Any] | Spoil, reason: str
) -> None:
    # Names of distributions are compared as packaging compares them.
    lock_path.write_text(lock_path.read_text().replace("acme-first", "Acme_First"))
    lock = lock_file.read(str(lock_path), TRUSTED)
    assert lock.problem == ""
    if isinstance(change, dict):
        plugin = replace(plugin, **change)
    else:
        assert plugin.folder is not None
        change(plugin.folder)
    fault = lock.find_fault(plugin).replace(str(lock_path), "LOCK")
    assert fault.startswith(reason)
    assert bool(fault) == bool(reason)


def test_the_library_s_hash_is_the_manifest_s(plugin: InstalledPlugin) -> None:
    assert lock_file.describe(replace(plugin, manifest=make_manifest()))["library"] == "ab" * 32


def test_text_does_not_depend_on_the_order_of_plugins(plugin: InstalledPlugin) -> None:
    one = lock_file.describe(plugin)
    two = {**one, "name": "second"}
    assert lock_file.text_of([one, two]) == lock_file.text_of([two, one])


def _written(**changes: object) -> Spoil:
    """Change keys of the document."""
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _link_to_what_all_may_write(path: Path) -> None:
    real = path.rename(path.with_name("real"))
    real.chmod(0o666)
    path.symlink_to(real)


PLUGIN = {
    **dict.fromkeys(("name", "distribution", "version", "module"), "x"),
    **dict.fromkeys(("manifest", "files"), "ab" * 32),
}
NO_LOCK = "LOCK is no lock file of version 1: "
UNREAD = "the lock file LOCK cannot be read: "
FOR_ALL = "can be changed by every user of this machine, who could so run code as you; make it safe"
# What is done to the file, and how the problem begins.
SPOILED: dict[str, tuple[Spoil, str]] = {
    "empty": (lambda path: path.write_text(""), f"{NO_LOCK}Expecting value"),
    "deep": (lambda path: path.write_text("[" * 100_000), f"{NO_LOCK}maximum recursion"),
    "version 2": (_written(custom_pypto_lock=2), f"{NO_LOCK}custom_pypto_lock must be 1, got 2"),
    "no name": (_written(plugins=[{}]), f"{NO_LOCK}plugins[0].name is missing"),
    "no hash": (
        _written(plugins=[{**PLUGIN, "files": "abc", "library": None}]),
        f"{NO_LOCK}plugins[0].files must be 64 lower case hexadecimal digits, got 'abc'",
    ),
    "a plugin twice": (
        _written(plugins=[{**PLUGIN, "library": None}] * 2),
        f"{NO_LOCK}plugins names one plugin more than once",
    ),
    "missing": (Path.unlink, f"{UNREAD}[Errno 2] No such file"),
    "pipe": (lambda path: (path.unlink(), os.mkfifo(path)), f"{UNREAD}is not a regular file"),
    "for all to write": (
        lambda path: path.chmod(0o666),
        f"the lock file LOCK is not safe: LOCK {FOR_ALL}: chmod o-w LOCK",
    ),
    "in a folder for all to write": (
        lambda path: path.parent.chmod(0o777),
        f"the lock file LOCK is not safe: FOLDER {FOR_ALL}",
    ),
    "link to what all may write": (
        _link_to_what_all_may_write,
        f"the lock file LOCK is not safe: FOLDER/real {FOR_ALL}",
    ),
}


@pytest.mark.parametrize(("spoil", "reason"), SPOILED.values(), ids=SPOILED)
def test_file_that_is_unusable_allows_nothing(lock_path: Path, spoil: Spoil, reason: str) -> None:
    spoil(lock_path)
    lock = lock_file.read(str(lock_path), TRUSTED)
    assert lock.plugins == {}
    problem = lock.problem.replace(str(lock_path), "LOCK").replace(str(lock_path.parent), "FOLDER")
    assert problem.startswith(f"no plugin may load: {reason}")


def test_file_of_another_user(lock_path: Path) -> None:
    assert "belongs to the user id" in lock_file.read(str(lock_path), frozenset({-1})).problem


def test_no_plugin_is_accepted_where_the_lock_cannot_be_used(plugin: InstalledPlugin) -> None:
    """One that is blocked stays so."""
    unusable = lock_file.read("", TRUSTED)
    found = discovery.inspect(plugin, Environment(), HOST, unusable)
    assert found.status is Status.REJECTED
    assert found.reason == (
        "no plugin may load: CUSTOM_PYPTO_LOCKFILE is set and empty; it must name a lock file; lock"
        " what is installed: custom-pypto lock FILE; or unset CUSTOM_PYPTO_LOCKFILE"
    )
    blocked = Environment(disable=frozenset({"first"}))
    assert discovery.inspect(plugin, blocked, HOST, unusable).status is Status.BLOCKED


# In an import of core


def lock(site: Site, *, file: str = "ops.lock", **variables: str) -> tuple[int, str, Path]:
    """Return status, output and file of ``custom-pypto lock``."""
    for package in ("custom_pypto_cli", "custom_pypto_build"):
        if not (site.folder / package).exists():
            link(site.folder, package)
    path = site.folder.parent / file
    code = f"from custom_pypto_cli import main; give(main(['lock', {str(path)!r}]))"
    done = site.start(code, **variables)
    output, status = done.stdout[:-2], done.stdout[-2:]
    return int(status), output + done.stderr, path


def locked(site: Site, **variables: str) -> str:
    status, _, path = lock(site, **variables)
    assert status == 0
    return str(path)


def test_locked_plugins_load_and_no_other(site: Site) -> None:
    site.install("first")
    path = locked(site)
    warning = "warning: CUSTOM_PYPTO_DISABLE names no installed plugin: 'frist'"
    assert warning in lock(site, CUSTOM_PYPTO_DISABLE="frist")[1]
    mark = site.folder / "it_ran"
    site.install("second", f"open({str(mark)!r}, 'w')", with_library=False)
    report = site.run(REPORT, CUSTOM_PYPTO_LOCKFILE=path)
    assert report["states"] == {"first": "loaded", "second": "rejected"}
    assert not mark.exists()
    [[category, message, _]] = report["warnings"]
    assert category == "PluginRejectedWarning"
    assert f"is not in the lock file {path}, which allows first" in message


def test_lock_decides_where_two_provide_one_op(site: Site) -> None:
    site.install("first", ops=["same"])
    site.install("second", ops=["same"])
    report = site.run(REPORT, CUSTOM_PYPTO_LOCKFILE=locked(site, CUSTOM_PYPTO_DISABLE="first"))
    assert report["states"] == {"second": "loaded", "first": "rejected"}
    assert report["ops"] == ["same"]


def test_command_writes_what_would_load_whatever_the_old_lock_says(site: Site) -> None:
    site.install("first")
    path = Path(locked(site))
    site.install("second")
    site.install("third")
    variables = {"CUSTOM_PYPTO_LOCKFILE": str(path), "CUSTOM_PYPTO_DISABLE": "third"}
    status, output, _ = lock(site, **variables)
    assert status == 0
    assert [line.split() for line in output.splitlines()[:-1]] == [
        ["LOCKED", "VERSION", "DISTRIBUTION"],
        ["first", "0.1.0", "custom-pypto-first"],
        ["second", "0.1.0", "custom-pypto-second"],
    ]
    assert output.splitlines()[-1] == (
        "not locked: third, which is blocked: CUSTOM_PYPTO_DISABLE names it; take it out of the"
        " variable to load it"
    )
    assert [each["name"] for each in json.loads(path.read_text())["plugins"]] == ["first", "second"]
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("", "custom-pypto lock: core would load no plugin now, so nothing was written"),
        ("gone/", "gone/ops.lock was not written: [Errno 2] No such file or directory"),
        ("open/", "with the file that was written, no plugin may load: the lock file "),
    ],
)
def test_command_says_why_there_is_no_lock(site: Site, folder: str, words: str) -> None:
    if folder:
        site.install("first")
    (site.folder.parent / "open").mkdir()
    (site.folder.parent / "open").chmod(0o777)
    status, output, path = lock(site, file=f"{folder}ops.lock")
    assert (status, path.exists()) == (1, folder == "open/")
    assert words in output
