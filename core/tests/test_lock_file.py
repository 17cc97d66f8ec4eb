"""The lock file: what it allows, and that nothing loads where it cannot be used."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

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


@pytest.fixture
def plugin(tmp_path: Path) -> InstalledPlugin:
    """An installed plugin whose kernels are Python."""
    folder = tmp_path / "acme_first"
    (folder / "inner" / "__pycache__").mkdir(parents=True)
    (folder / "__init__.py").write_text("one = 1\n")
    (folder / "inner" / "__init__.py").touch()
    (folder / "inner" / "__pycache__" / "__init__.cpython-310.pyc").touch()
    made = make_manifest(library=None, platform=manifest.ANY_PLATFORM)
    made.write(folder / manifest.FILE_NAME)
    return InstalledPlugin("first", "acme_first", "Acme.First", "1.0", folder, manifest=made)


@pytest.fixture
def lock_path(tmp_path: Path, plugin: InstalledPlugin) -> Path:
    """A lock file that allows the plugin as it is."""
    path = tmp_path / "ops.lock"
    path.write_text(lock_file.text_of([lock_file.describe(plugin)]))
    return path


def _in_package(change: Callable[[Path], object]) -> Callable[[InstalledPlugin], InstalledPlugin]:
    """Return what changes the files of a plugin."""

    def changed(plugin: InstalledPlugin) -> InstalledPlugin:
        assert plugin.folder is not None
        change(plugin.folder)
        return plugin

    return changed


def _other_manifest(folder: Path) -> None:
    changed = make_manifest(library=None, platform=manifest.ANY_PLATFORM, opp="opp")
    changed.write(folder / manifest.FILE_NAME)


INSTEAD = "; install what it allows: pip install --force-reinstall --no-deps acme-first==1.0; or"
FILES = "the lock file LOCK allows a package whose files have the sha256 "
# What differs from what was locked, and how the reason begins, if there is one.
CHANGES: dict[str, tuple[Callable[[InstalledPlugin], InstalledPlugin], str]] = {
    "nothing": (lambda plugin: plugin, ""),
    "name": (
        lambda plugin: replace(plugin, name="second", distribution="acme-second"),
        (
            "is not in the lock file LOCK, which allows first; pip uninstall acme-second, or lock"
            " what is installed: custom-pypto lock LOCK"
        ),
    ),
    "distribution": (
        lambda plugin: replace(plugin, distribution="acme-other"),
        "the lock file LOCK allows the distribution acme-first, installed is acme-other" + INSTEAD,
    ),
    "distribution as pip compares it": (
        lambda plugin: replace(plugin, distribution="ACME_First"),
        "",
    ),
    "version": (
        lambda plugin: replace(plugin, version="1.1"),
        "the lock file LOCK allows the version 1.0, installed is 1.1" + INSTEAD,
    ),
    "module": (
        lambda plugin: replace(plugin, module="acme_first.inner"),
        "the lock file LOCK allows the module acme_first, installed is acme_first.inner" + INSTEAD,
    ),
    "manifest": (_in_package(_other_manifest), "the lock file LOCK allows a manifest with sha256 "),
    "file added": (_in_package(lambda folder: (folder / "more.py").touch()), FILES),
    "file removed": (_in_package(lambda folder: (folder / "inner/__init__.py").unlink()), FILES),
    "file changed": (
        _in_package(lambda folder: (folder / "__init__.py").write_text("one = 2\n")),
        FILES,
    ),
    "folder renamed": (
        _in_package(lambda folder: (folder / "inner").rename(folder / "other")),
        FILES,
    ),
    "folder linked": (_in_package(lambda folder: (folder / "linked").symlink_to("inner")), FILES),
    "bytecode": (
        _in_package(lambda folder: (folder / "inner/__pycache__/__init__.cpython-314.pyc").touch()),
        "",
    ),
}


@pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES)
def test_what_differs_from_the_lock_is_refused(
    lock_path: Path,
    plugin: InstalledPlugin,
    change: Callable[[InstalledPlugin], InstalledPlugin],
    reason: str,
) -> None:
    lock = lock_file.read(str(lock_path), TRUSTED)
    assert lock.problem == ""
    fault = lock.find_fault(change(plugin)).replace(str(lock_path), "LOCK")
    assert fault.startswith(reason)
    assert bool(fault) == bool(reason)


def test_library_is_that_of_the_manifest(plugin: InstalledPlugin) -> None:
    with_library = replace(plugin, manifest=make_manifest())
    assert lock_file.describe(with_library).library == "ab" * 32


def test_text_does_not_depend_on_the_order(plugin: InstalledPlugin) -> None:
    one = lock_file.describe(plugin)
    two = replace(one, name="second")
    assert lock_file.text_of([one, two]) == lock_file.text_of([two, one])


# A lock file that cannot be used


def _written(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


def _changed(change: Callable[[list[dict[str, str]]], None]) -> Callable[[Path], object]:
    def spoil(path: Path) -> None:
        document = json.loads(path.read_text())
        change(document["plugins"])
        path.write_text(json.dumps(document))

    return spoil


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    def spoil(path: Path) -> None:
        path.unlink()
        make(path)

    return spoil


def _link_to_what_all_may_write(path: Path) -> None:
    real = path.rename(path.with_name("real"))
    real.chmod(0o666)
    path.symlink_to(real)


NO_LOCK = "LOCK is no lock file of version 1: "
UNREAD = "the lock file LOCK cannot be read: "
FOR_ALL = "can be changed by every user of this machine, who could so run code as you; make it safe"
# What is done to the file, and how the problem begins.
SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (_written(""), f"{NO_LOCK}Expecting value"),
    "list": (_written("[]"), f"{NO_LOCK}the file must be a table"),
    "no version": (_written("{}"), f"{NO_LOCK}custom_pypto_lock is missing"),
    "other version": (
        _written('{"custom_pypto_lock": 2, "plugins": []}'),
        f"{NO_LOCK}custom_pypto_lock must be 1, got 2",
    ),
    "no plugins": (_written('{"custom_pypto_lock": 1}'), f"{NO_LOCK}plugins is missing"),
    "no name": (
        _written('{"custom_pypto_lock": 1, "plugins": [{}]}'),
        f"{NO_LOCK}plugins[0].name is missing",
    ),
    "deep": (_written("[" * 100_000), f"{NO_LOCK}maximum recursion"),
    "no hash": (
        _changed(lambda plugins: plugins[0].update(files="abc")),
        f"{NO_LOCK}plugins[0].files must be 64 lower case hexadecimal digits, got 'abc'",
    ),
    "a plugin twice": (
        _changed(lambda plugins: plugins.append(plugins[0])),
        f"{NO_LOCK}plugins names one plugin more than once",
    ),
    "missing": (Path.unlink, f"{UNREAD}[Errno 2] No such file"),
    "link to itself": (_replaced(lambda path: path.symlink_to(path.name)), UNREAD),
    "folder": (_replaced(Path.mkdir), f"{UNREAD}is not a regular file"),
    "pipe": (_replaced(os.mkfifo), f"{UNREAD}is not a regular file"),
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
def test_file_that_cannot_be_used_allows_nothing(
    lock_path: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    spoil(lock_path)
    lock = lock_file.read(str(lock_path), TRUSTED)
    assert lock.plugins == {}
    problem = lock.problem.replace(str(lock_path), "LOCK").replace(str(lock_path.parent), "FOLDER")
    assert problem.startswith(f"no plugin may load: {reason}")


def test_file_of_another_user(lock_path: Path) -> None:
    lock = lock_file.read(str(lock_path), frozenset({-1}))
    assert "belongs to the user id" in lock.problem


# In discovery


def test_no_plugin_is_accepted_where_the_lock_cannot_be_used(plugin: InstalledPlugin) -> None:
    found = discovery.inspect(plugin, Environment(), HOST, lock_file.read("", TRUSTED))
    assert found.status is Status.REJECTED
    assert found.reason == (
        "no plugin may load: CUSTOM_PYPTO_LOCKFILE is set and empty; it must name a lock file; lock"
        " what is installed: custom-pypto lock FILE; or unset CUSTOM_PYPTO_LOCKFILE"
    )


def test_blocked_plugin_stays_blocked(plugin: InstalledPlugin) -> None:
    settings = Environment(disable=frozenset({"first"}))
    found = discovery.inspect(plugin, settings, HOST, lock_file.read("", TRUSTED))
    assert found.status is Status.BLOCKED


# In an import of core


def lock(site: Site, *, file: str = "ops.lock", **variables: str) -> tuple[int, str, Path]:
    """Run ``custom-pypto lock``; return its status, its output and the file."""
    for package in ("custom_pypto_cli", "custom_pypto_build"):
        if not (site.folder / package).exists():
            link(site.folder, package)
    path = site.folder.parent / file
    status, output = site.run(
        f"""
        import contextlib, io
        from custom_pypto_cli import main
        with contextlib.redirect_stdout(io.StringIO()) as output:
            with contextlib.redirect_stderr(output):
                status = main(["lock", {str(path)!r}])
        give([status, output.getvalue()])
        """,
        **variables,
    )
    return status, output, path


def locked(site: Site, **variables: str) -> str:
    status, _, path = lock(site, **variables)
    assert status == 0
    return str(path)


def test_locked_plugins_load_and_no_other(site: Site) -> None:
    site.install("first")
    path = locked(site)
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
    path = locked(site, CUSTOM_PYPTO_DISABLE="first")
    report = site.run(REPORT, CUSTOM_PYPTO_LOCKFILE=path)
    assert report["states"] == {"second": "loaded", "first": "rejected"}
    assert report["ops"] == ["same"]


def test_import_without_a_usable_lock_loads_nothing_and_raises_nothing(site: Site) -> None:
    site.install("first")
    report = site.run(REPORT, CUSTOM_PYPTO_LOCKFILE="/nowhere/ops.lock")
    assert (report["states"], report["ops"]) == ({"first": "rejected"}, [])


# The command


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
    names = [each["name"] for each in json.loads(path.read_text())["plugins"]]
    assert names == ["first", "second"]
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(".")] == []


def test_command_writes_nothing_where_nothing_would_load(site: Site) -> None:
    status, output, path = lock(site)
    assert status == 1
    assert output.startswith("custom-pypto lock: core would load no plugin now, so nothing was")
    assert not path.exists()


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("gone", "gone/ops.lock was not written: [Errno 2] No such file or directory"),
        ("open", "with the file that was written, no plugin may load: the lock file "),
    ],
)
def test_command_says_what_is_wrong_with_the_folder(site: Site, folder: str, words: str) -> None:
    site.install("first")
    (site.folder.parent / "open").mkdir()
    (site.folder.parent / "open").chmod(0o777)
    status, output, _ = lock(site, file=f"{folder}/ops.lock")
    assert status == 1
    assert words in output
