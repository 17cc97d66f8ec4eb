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


def fault(lock_path: Path, plugin: InstalledPlugin) -> str:
    lock = lock_file.read(str(lock_path), TRUSTED)
    assert lock.problem == ""
    return lock.find_fault(plugin)


def test_plugin_that_is_as_locked_is_allowed(lock_path: Path, plugin: InstalledPlugin) -> None:
    assert fault(lock_path, plugin) == ""


def test_distributions_are_compared_as_pip_does(lock_path: Path, plugin: InstalledPlugin) -> None:
    lock_path.write_text(lock_path.read_text().replace("acme-first", "ACME_First"))
    assert fault(lock_path, plugin) == ""


def test_plugin_that_is_not_in_the_lock(lock_path: Path, plugin: InstalledPlugin) -> None:
    other = replace(plugin, name="second", distribution="acme-second")
    assert fault(lock_path, other) == (
        f"is not in the lock file {lock_path}, which allows first; pip uninstall acme-second, or"
        f" lock what is installed: custom-pypto lock {lock_path}"
    )


@pytest.mark.parametrize(
    ("field", "value", "need", "have"),
    [
        ("distribution", "acme-other", "the distribution acme-first", "acme-other"),
        ("version", "1.1", "the version 1.0", "1.1"),
        ("module", "acme_first.inner", "the module acme_first", "acme_first.inner"),
    ],
)
def test_plugin_of_another_identity(
    lock_path: Path, plugin: InstalledPlugin, field: str, value: str, need: str, have: str
) -> None:
    assert fault(lock_path, replace(plugin, **{field: value})) == (
        f"the lock file {lock_path} allows {need}, installed is {have}; install what it allows: pip"
        " install --force-reinstall --no-deps acme-first==1.0; or lock what is installed:"
        f" custom-pypto lock {lock_path}"
    )


def _add_file(folder: Path) -> None:
    (folder / "more.py").touch()


def _remove_file(folder: Path) -> None:
    (folder / "inner" / "__init__.py").unlink()


def _rename_folder(folder: Path) -> None:
    (folder / "inner").rename(folder / "other")


def _change_file(folder: Path) -> None:
    (folder / "__init__.py").write_text("one = 2\n")


def _link_folder(folder: Path) -> None:
    (folder / "linked").symlink_to("inner")


@pytest.mark.parametrize(
    "change", [_add_file, _remove_file, _rename_folder, _change_file, _link_folder]
)
def test_every_file_of_the_package_counts(
    lock_path: Path, plugin: InstalledPlugin, change: Callable[[Path], None]
) -> None:
    assert plugin.folder is not None
    change(plugin.folder)
    assert "allows a package whose files have the sha256 " in fault(lock_path, plugin)


def test_bytecode_does_not_count(lock_path: Path, plugin: InstalledPlugin) -> None:
    assert plugin.folder is not None
    (plugin.folder / "inner" / "__pycache__" / "__init__.cpython-314.pyc").touch()
    assert fault(lock_path, plugin) == ""


def test_manifest_is_named_where_it_differs(lock_path: Path, plugin: InstalledPlugin) -> None:
    assert plugin.folder is not None
    changed = make_manifest(library=None, platform=manifest.ANY_PLATFORM, opp="opp")
    changed.write(plugin.folder / manifest.FILE_NAME)
    assert "allows a manifest with sha256 " in fault(lock_path, plugin)


def test_library_is_that_of_the_manifest(plugin: InstalledPlugin) -> None:
    with_library = replace(plugin, manifest=make_manifest())
    assert lock_file.describe(with_library).library == "ab" * 32


def test_text_does_not_depend_on_the_order(plugin: InstalledPlugin) -> None:
    one = lock_file.describe(plugin)
    two = replace(one, name="second")
    assert lock_file.text_of([one, two]) == lock_file.text_of([two, one])


# A lock file that cannot be used


def problem(path: Path) -> str:
    """Return the problem of a lock file, and check that no plugin is allowed."""
    lock = lock_file.read(str(path), TRUSTED)
    assert lock.plugins == {}
    assert lock.problem.startswith("no plugin may load: ")
    return lock.problem.removeprefix("no plugin may load: ")


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    assert problem(path).startswith(f"the lock file {path} cannot be read: [Errno 2] No such file")


def test_link_to_itself(tmp_path: Path) -> None:
    circle = tmp_path / "circle"
    circle.symlink_to("circle")
    assert problem(circle).startswith(f"the lock file {circle} cannot be read: ")


def test_folder_and_pipe_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in problem(tmp_path)
    assert "is not a regular file" in problem(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[]", "the file must be a table"),
        ("{}", "custom_pypto_lock is missing"),
        ('{"custom_pypto_lock": 2, "plugins": []}', "custom_pypto_lock must be 1, got 2"),
        ('{"custom_pypto_lock": 1}', "plugins is missing"),
        ('{"custom_pypto_lock": 1, "plugins": [{}]}', "plugins[0].name is missing"),
        ("[" * 100_000, "maximum recursion"),
    ],
)
def test_file_that_is_no_lock(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "ops.lock"
    path.write_text(text)
    found = problem(path)
    assert found.startswith(f"{path} is no lock file of version 1: ")
    assert reason in found


def _change(lock_path: Path, change: Callable[[list[dict[str, str]]], None]) -> None:
    document = json.loads(lock_path.read_text())
    change(document["plugins"])
    lock_path.write_text(json.dumps(document))


def test_hash_must_be_a_hash(lock_path: Path) -> None:
    _change(lock_path, lambda plugins: plugins[0].update(files="abc"))
    assert "plugins[0].files must be 64 lower case hexadecimal digits, got 'abc'" in (
        problem(lock_path)
    )


def test_plugin_that_is_named_twice(lock_path: Path) -> None:
    _change(lock_path, lambda plugins: plugins.append(plugins[0]))
    assert "plugins names one plugin more than once" in problem(lock_path)


def test_file_that_others_may_write(lock_path: Path) -> None:
    lock_path.chmod(0o666)
    assert problem(lock_path) == (
        f"the lock file {lock_path} is not safe: {lock_path} can be changed by every user of this"
        f" machine, who could so run code as you; make it safe: chmod o-w {lock_path}"
    )


def test_file_in_a_folder_that_others_may_write(lock_path: Path) -> None:
    lock_path.parent.chmod(0o777)
    assert "can be changed by every user" in problem(lock_path)


def test_file_behind_a_link_that_others_may_write(tmp_path: Path, lock_path: Path) -> None:
    link_to_it = tmp_path / "link"
    link_to_it.symlink_to(lock_path)
    lock_path.chmod(0o666)
    assert "can be changed by every user" in problem(link_to_it)


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


def test_lock_decides_where_two_have_one_name(site: Site) -> None:
    site.install("first", ops=["one"], distribution="acme-one", package="acme_one")
    path = locked(site)
    site.install("first", ops=["two"], distribution="acme-two", package="acme_two")
    report = site.run(REPORT, CUSTOM_PYPTO_LOCKFILE=path)
    assert report["ops"] == ["one"]
    [[_, message, _]] = report["warnings"]
    assert "allows the distribution acme-one, installed is acme-two" in message


def test_changed_module_does_not_run(site: Site) -> None:
    installed = site.install("first")
    path = locked(site)
    mark = site.folder / "it_ran"
    (installed.package / "__init__.py").write_text(f"open({str(mark)!r}, 'w')")
    report = site.run(REPORT, CUSTOM_PYPTO_LOCKFILE=path)
    assert report["states"] == {"first": "rejected"}
    assert not mark.exists()


@pytest.mark.parametrize("path", ["", "/nowhere/ops.lock"])
def test_import_without_a_usable_lock_loads_nothing_and_raises_nothing(
    site: Site, path: str
) -> None:
    site.install("first")
    site.install("second", with_library=False)
    report = site.run(REPORT, CUSTOM_PYPTO_LOCKFILE=path)
    assert report["states"] == {"first": "rejected", "second": "rejected"}
    assert report["ops"] == []


def test_import_without_the_variable_does_not_import_the_module(site: Site) -> None:
    site.install("first")
    assert site.load("import sys; 'custom_pypto_discovery.lock_file' in sys.modules") is False


# The command


def test_command_writes_what_would_load_whatever_the_old_lock_says(site: Site) -> None:
    site.install("first")
    path = Path(locked(site))
    site.install("second")
    site.install("third")
    locked(site, CUSTOM_PYPTO_LOCKFILE=str(path), CUSTOM_PYPTO_DISABLE="third")
    names = [each["name"] for each in json.loads(path.read_text())["plugins"]]
    assert names == ["first", "second"]
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(".")] == []


def test_command_writes_nothing_where_nothing_would_load(site: Site) -> None:
    status, output, path = lock(site)
    assert status == 1
    assert output.startswith("custom-pypto lock: core would load no plugin now, so nothing was")
    assert not path.exists()


def test_command_says_what_it_locked_and_what_not(site: Site) -> None:
    site.install("first")
    site.install("second")
    _, output, _ = lock(site, CUSTOM_PYPTO_DISABLE="second")
    heading, line, remark = output.splitlines()
    assert heading.split() == ["LOCKED", "VERSION", "DISTRIBUTION"]
    assert line.split() == ["first", "0.1.0", "custom-pypto-first"]
    assert remark == (
        "not locked: second, which is blocked: CUSTOM_PYPTO_DISABLE names it; take it out of the"
        " variable to load it"
    )


def test_command_refuses_a_folder_that_is_not_there(site: Site) -> None:
    site.install("first")
    status, output, _ = lock(site, file="gone/ops.lock")
    assert status == 1
    assert "gone/ops.lock was not written: [Errno 2] No such file or directory" in output


def test_command_warns_of_a_file_that_others_could_replace(site: Site) -> None:
    site.install("first")
    (site.folder.parent / "open").mkdir()
    (site.folder.parent / "open").chmod(0o777)
    status, output, _ = lock(site, file="open/ops.lock")
    assert status == 1
    assert "with the file that was written, no plugin may load: the lock file " in output
