"""Discovery of one plugin: what is found, what is rejected and why, with nothing imported."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from custom_pypto_contract.manifest import FILE_NAME, GROUP, AscendcLibrary, Library
from custom_pypto_discovery import discovery, distributions, host
from custom_pypto_discovery.environment import Environment
from custom_pypto_discovery.host import Host, this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status, delete
from manifests import make_manifest
from plugin_factory import Installed

CONTENTS = b"\x7fELF and the rest"
SHA256 = hashlib.sha256(CONTENTS).hexdigest()
LIBRARY, KERNELS = "lib/libfirst.so", "lib/libfirst_ascendc_dav-1001.so"
MODULE_THAT_MUST_NOT_RUN = "raise AssertionError('imported')\n"
HOST = Host(
    platform="linux_x86_64",
    core_abi=(1, 3),
    core_version="0.4.0",
    torch=(2, 12),
    trusted_owners=this_host().trusted_owners,
)
Change = Callable[[Installed], object]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The two folders on `sys.path`; beside them is a folder `outside`."""
    made = (tmp_path / "before", tmp_path / "site")
    monkeypatch.setattr(sys, "path", list(map(str, made)))
    for folder in (*made, tmp_path / "outside"):
        folder.mkdir()
    return made


@pytest.fixture
def folder(folders: tuple[Path, Path]) -> Path:
    """The second of them."""
    return folders[1]


@pytest.fixture
def plugin(folder: Path) -> Installed:
    """The plugin `first` with nothing wrong, in that folder."""
    return install(folder)


def install(
    folder: Path, name: str = "first", *, version: str = "1.0", with_package: bool = True
) -> Installed:
    """Write what pip would leave of a plugin."""
    made = Installed(folder / f"acme_{name}", folder / f"acme_{name}-{version}.dist-info")
    made.dist_info.mkdir()
    (made.dist_info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: acme-{name}\nVersion: {version}\n\nName: of the README\n"
    )
    (made.dist_info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = acme_{name}\n")
    if with_package:
        (made.package / "lib").mkdir(parents=True)
        (made.package / "__init__.py").write_text(MODULE_THAT_MUST_NOT_RUN)
        (made.package / LIBRARY).write_bytes(CONTENTS)
        make_manifest(name, version=version, library=Library(LIBRARY, SHA256)).write(made.manifest)
    return made


def only(settings: Environment = Environment(), on: Host = HOST) -> InstalledPlugin:  # noqa: B008
    [found] = discovery.discover(settings, on)
    return found


def test_plugin_has_name_module_distribution_version_folder_and_manifest(folder: Path) -> None:
    assert discovery.discover(Environment(), HOST) == ()
    plugin = install(folder)
    first = ("first", "acme_first", "acme-first", "1.0", plugin.package, plugin.dist_info)
    found = only()
    assert replace(found, manifest=None, library_state=()) == InstalledPlugin(*first)
    assert (found.status, found.families) == (Status.ACCEPTED, ("first",))
    assert "acme_first" not in sys.modules


def test_folder_is_that_of_the_top_level_package(plugin: Installed) -> None:
    (plugin.dist_info / "entry_points.txt").write_text(f"[{GROUP}]\nfirst = acme_first.hooks.all\n")
    assert (only().module, only().folder) == ("acme_first.hooks.all", plugin.package)


def test_files_of_a_blocked_plugin_are_not_looked_at(plugin: Installed) -> None:
    (plugin.package / LIBRARY).unlink()
    found = only(Environment(disable=frozenset({"first"})))
    assert (found.status, found.families) == (Status.BLOCKED, ("first",))
    assert found.reason.startswith("CUSTOM_PYPTO_DISABLE names it")


# Several distributions


@pytest.fixture(params=[False, True], ids=["listed-up", "listed-down"])
def _listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order in which the file system lists a folder, which is any."""
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda *path: sorted(listdir(*path), reverse=request.param))


@pytest.mark.usefixtures("_listing")
@pytest.mark.parametrize("missing", [(), ("entry_points.txt",), ("METADATA",)])
def test_leftover_metadata_does_not_hide_the_plugin(folder: Path, missing: tuple[str, ...]) -> None:
    leftover = install(folder, with_package=False, version="0.9")
    for name in missing:
        (leftover.dist_info / name).unlink()
    assert install(folder).dist_info == only().metadata
    assert (only().version, only().reason) == ("1.0", "")


@pytest.mark.usefixtures("_listing")
def test_the_older_metadata_counts_where_the_files_are_older(plugin: Installed) -> None:
    install(plugin.package.parent, with_package=False, version="1.1")
    assert only().version == "1.0"


@pytest.mark.parametrize("has_package", [False, True])
def test_the_first_folder_that_has_the_package_counts(
    folders: tuple[Path, Path], plugin: Installed, has_package: bool
) -> None:
    first = install(folders[0], with_package=has_package, version="0.9")
    counts, version = (first, "0.9") if has_package else (plugin, "1.0")
    assert (only().folder, only().version, only().reason) == (counts.package, version, "")


def test_an_editable_installation(folders: tuple[Path, Path], plugin: Installed) -> None:
    shutil.move(plugin.dist_info, folders[0])
    assert (only().folder, only().reason) == (plugin.package, "")


def test_what_is_no_plugin_hides_none(folder: Path, plugin: Installed) -> None:
    # What an interrupted pip left; then wheels without, and with broken, entry points.
    shutil.copytree(plugin.dist_info, folder / "~cme_first-0.9.dist-info")
    for name, text in (("one", "[console_scripts]\nfirst = a:main"), ("two", "[console_scr\nno")):
        (install(folder, name).dist_info / "entry_points.txt").write_text(text)
    assert (only().distribution, only().reason) == ("acme-first", "")


@pytest.mark.usefixtures("plugin")
def test_a_foreign_finder_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_distributions(context: object) -> None:
        raise RuntimeError("not today")

    broken = SimpleNamespace(find_distributions=find_distributions, find_spec=lambda *_: None)
    monkeypatch.setattr(sys, "meta_path", [broken, *sys.meta_path])
    assert only().reason == ""


# What is rejected


def _entry_points(text: str) -> Change:
    return lambda plugin: (plugin.dist_info / "entry_points.txt").write_text(text)


def _metadata(text: bytes) -> Change:
    return lambda plugin: (plugin.dist_info / "METADATA").write_bytes(text)


def _shadow(file: str) -> Change:
    def change(plugin: Installed) -> None:
        path = plugin.package.parents[1] / "before" / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(MODULE_THAT_MUST_NOT_RUN)

    return change


def instead(name: str, make: Callable[[Path], object]) -> Change:
    """Return what makes something else of a file or folder beside the package, or in it."""

    def change(plugin: Installed) -> None:
        path = plugin.package.parent / name
        path.rename(_outside(plugin) / "moved")
        make(path)

    return change


def _link(target: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(target)


def _sparse_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 33)


def _outside(plugin: Installed) -> Path:
    return plugin.package.parents[1] / "outside"


def _link_file(plugin: Installed) -> Path:
    (target := _outside(plugin) / "module.py").touch()
    (plugin.package / "module.py").symlink_to(target)
    return target


def _move_package(plugin: Installed) -> Path:
    moved = plugin.package.rename(_outside(plugin) / plugin.package.name)
    plugin.package.symlink_to(moved)
    return moved


def _name_kernels(plugin: Installed, contents: bytes | None = CONTENTS) -> None:
    if contents is not None:
        (plugin.package / "lib/libkernels.so").write_bytes(contents)
    kernels = AscendcLibrary("lib/libkernels.so", SHA256, "dav-2201")
    make_manifest(library=Library(LIBRARY, SHA256), ascendc=kernels).write(plugin.manifest)


def _forge(**changes: Any) -> Change:
    return lambda plugin: plugin.forge(**changes)


PACKAGE = "acme_first"
MANIFEST = f"{PACKAGE}/{FILE_NAME}"
METADATA = "acme_first-1.0.dist-info/METADATA"
ENTRY = f"the entry point 'first' in the group {GROUP!r} names "
NO_MODULE = "; it must name a module, such as 'custom_pypto_add_custom'"
SHADOWED = (
    "another module called 'acme_first', BEFORE/acme_first{}, comes before the plugin's package,"
    " which is PACKAGE; rename or remove that module, or take its folder out of sys.path"
)
OTHER_HASH = (
    f"is not the one it was built with: sha256 {hashlib.sha256(b'other').hexdigest()[:16]}..., the"
    f" manifest says {SHA256[:16]}...; REINSTALL"
)
LEADS_OUT = "leads out of its package, to"
FOR_ALL = (
    "{0} can be changed by every user of this machine, who could so run code as you; make it safe:"
    " chmod o-w {0}"
)
LOOSE = (
    f"its package has PACKAGE/{KERNELS}, a library of AscendC kernels that its manifest does not"
    " name; delete that file"
)
# What no file is, and what is said of it.
ENDLESS: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "is not a regular file"),
    "device": (_link("/dev/zero"), "is not a regular file"),
    "folder": (os.mkdir, "is not a regular file"),
    "sparse file": (_sparse_file, "has 8589934592 bytes, at most 4194304 are read"),
}
NOT_ITS_OWN = "; a library must be a file of its own package; REINSTALL"
PLACE, ITS_LIBRARY = f"{PACKAGE}/{LIBRARY}", f"its library PACKAGE/{LIBRARY}"
LED_OUT = f"its library {LIBRARY} {LEADS_OUT} OUTSIDE/moved"
ITS_KERNELS = "its library PACKAGE/lib/libkernels.so"
LATE = ", where somebody may put a file; delete the link"
UNREAD = "its metadata cannot be read: UnsuitableFileError: "
RENEW = "; DELETE, and reinstall it: pip install --force-reinstall --no-deps acme_first"
CORE = "custom-pypto-core 0.4.0"
PLUGIN_IS_OLD = (
    f"requires core ABI 0.{{}}, but {CORE} offers 1.3. Upgrade the plugin: pip install --upgrade"
    f" acme-first; if there is no newer version, it has to be built again with {CORE}"
)
CORE_IS_OLD = (
    f"requires core ABI {{}}, but {CORE} offers 1.3. Upgrade core: in a clone of the project, `pip"
    " install --no-build-isolation ./core`"
)
TORCH_IS_OLD = (
    "requires torch {0} or newer, but torch 2.12 is installed. Upgrade it: pip install --upgrade"
    " 'torch>={0}'"
)
# What is done to the plugin, and the reason, where ANYTHING is what Python says.
REJECTED: list[tuple[Change, str]] = [
    (_metadata(b"Name: acme-first\n"), "its metadata gives no version; DELETE, and REINSTALL"),
    (_metadata(b""), f"its metadata gives no name{RENEW}"),
    (
        _metadata(b"\xff\xfe\x00"),
        (
            f"{UNREAD}is no text in UTF-8: 'utf-8' codec can't decode byte 0xff in position 0:"
            f" invalid start byte{RENEW}"
        ),
    ),
    *(
        (instead(file, make), f"{begin}{fault}{end}")
        for file, begin, end in (
            (METADATA, UNREAD, RENEW),
            (MANIFEST, f"PACKAGE/{FILE_NAME}: ", "; REINSTALL"),
        )
        for make, fault in ENDLESS.values()
    ),
    *(
        (_entry_points(f"[{GROUP}]\nfirst = {value}\n"), f"{ENTRY}{value!r}{NO_MODULE}")
        for value in ("acme-first", "acme_first:plugin", "1st", ".acme_first")
    ),
    (
        _entry_points(f"[other]\nx = y\n[{GROUP}]\n# no value\nfirst\n\n[more]\nz=a\n"),
        f"{ENTRY}''{NO_MODULE}",
    ),
    (lambda p: shutil.rmtree(p.package), "its package 'acme_first' is not installed; REINSTALL"),
    (_shadow("acme_first/__init__.py"), SHADOWED.format("")),
    (_shadow("acme_first.py"), SHADOWED.format(".py")),
    (
        lambda plugin: plugin.manifest.unlink(),
        (
            f"no manifest: PACKAGE/{FILE_NAME} does not exist; custom_pypto_build writes it into"
            " the wheel; REINSTALL"
        ),
    ),
    (
        _forge(name="second"),
        (
            "its entry point calls it 'first', its manifest 'second'; give the entry point the"
            " plugin's name and build it again"
        ),
    ),
    (
        _forge(distribution="acme-second"),
        "PACKAGE belongs to the distribution acme-second, not to acme-first; REINSTALL",
    ),
    (_forge(version="2"), "its files are of version 2, but acme-first 1.0 is installed; REINSTALL"),
    (
        _forge(platform="linux_aarch64"),
        (
            "was built for linux_aarch64, but this Python runs on linux_x86_64. Install the wheel"
            " for this platform: pip install --force-reinstall --no-deps acme-first"
        ),
    ),
    *((_forge(core_abi=[0, minor]), PLUGIN_IS_OLD.format(minor)) for minor in (3, 9)),
    *((_forge(core_abi=abi), CORE_IS_OLD.format("{}.{}".format(*abi))) for abi in ([1, 4], [2, 0])),
    *((_forge(torch_target=each), TORCH_IS_OLD.format(each)) for each in ("2.13", "3.0")),
    (lambda p: (p.package / LIBRARY).write_bytes(b"other"), f"{ITS_LIBRARY} {OTHER_HASH}"),
    (lambda p: (p.package / LIBRARY).unlink(), f"{ITS_LIBRARY} is missing; REINSTALL"),
    (instead(PLACE, os.mkdir), f"{ITS_LIBRARY} is not a regular file; REINSTALL"),
    (instead(PLACE, _link("libfirst.so")), f"{ITS_LIBRARY} cannot be read: ANYTHING; REINSTALL"),
    (instead(PLACE, _link("../../../outside/moved")), f"{LED_OUT}{NOT_ITS_OWN}"),
    (
        instead(f"{PACKAGE}/lib", _link("../../outside/moved")),
        f"{LED_OUT}/libfirst.so{NOT_ITS_OWN}",
    ),
    (
        lambda plugin: (plugin.package / "part").symlink_to("../../outside"),
        (
            f"the folder PACKAGE/part {LEADS_OUT} OUTSIDE; a folder must be in its own package: put"
            " a copy in place of the link"
        ),
    ),
    (lambda p: _name_kernels(p, None), f"{ITS_KERNELS} is missing; REINSTALL"),
    (lambda p: _name_kernels(p, b"other"), f"{ITS_KERNELS} {OTHER_HASH}"),
    (lambda plugin: (plugin.package / KERNELS).touch(), LOOSE),
    (lambda plugin: (_name_kernels(plugin), (plugin.package / KERNELS).touch()), LOOSE),
    (lambda plugin: _link_file(plugin).chmod(0o666), FOR_ALL.format("PACKAGE/module.py")),
    (lambda plugin: _link_file(plugin).parent.chmod(0o777), FOR_ALL.format("OUTSIDE")),
    (lambda plugin: _move_package(plugin).parent.chmod(0o777), FOR_ALL.format("OUTSIDE")),
    (
        lambda plugin: os.mkfifo(plugin.package / "module.py"),
        "PACKAGE/module.py is neither a file nor a folder; delete it",
    ),
    *(
        (
            lambda plugin, to=to: (plugin.package / "late.py").symlink_to(to),
            f"the link PACKAGE/late.py {LEADS_OUT} {target}{LATE}",
        )
        for to, target in (("../nowhere", "SITE/nowhere"), ("/nowhere/x.py", "/nowhere/x.py"))
    ),
]


@pytest.mark.parametrize(("change", "reason"), REJECTED)
def test_plugin_with_a_fault_is_rejected(plugin: Installed, change: Change, reason: str) -> None:
    site = plugin.package.parent
    change(plugin)
    words = {
        "PACKAGE": plugin.package,
        "SITE": site,
        "OUTSIDE": _outside(plugin),
        "BEFORE": site.parent / "before",
        "DELETE": delete(plugin.dist_info),
        "REINSTALL": "reinstall it: pip install --force-reinstall --no-deps acme-first",
    }
    for word, text in words.items():
        reason = reason.replace(word, str(text))
    found = only()
    assert found.status == Status.REJECTED
    assert re.fullmatch(re.escape(reason).replace("ANYTHING", ".*"), found.reason), found.reason


@pytest.mark.parametrize("make", [make for make, _ in ENDLESS.values()], ids=ENDLESS)
@pytest.mark.parametrize("file", ["METADATA", "entry_points.txt"])
def test_endless_metadata(plugin: Installed, make: Callable[[Path], object], file: str) -> None:
    site = plugin.package.parent
    # An older version, and a distribution of somebody else.
    spoilt = install(site, with_package=False, version="0.9").dist_info / file
    spoilt.unlink()
    make(spoilt)
    (site / "other-1.0.dist-info").mkdir()
    make(site / "other-1.0.dist-info" / file)
    assert (only().version, only().reason) == ("1.0", "")
    assert distributions.version("other") == ""


@pytest.mark.usefixtures("plugin")
def test_a_module_without_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "acme_first", ModuleType("acme_first"))
    assert only().reason.startswith("its package 'acme_first' cannot be looked up: ValueError: ")


# Who may write


@pytest.mark.parametrize(
    "part",
    [
        ".",
        "acme_first",
        "acme_first/__pycache__/__init__.cpython-311.pyc",
        "acme_first/lib/libfirst.so",
        "acme_first/part/deep.py",
        "acme_first-1.0.dist-info",
    ],
)
def test_what_everybody_may_write_is_rejected(plugin: Installed, part: str) -> None:
    path = plugin.package.parent / part
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.touch() if path.suffix else path.mkdir()
    path.chmod(0o777)
    assert only().reason == FOR_ALL.format(path)


def test_package_without_metadata_folder_is_looked_at(plugin: Installed) -> None:
    (plugin.package / "__init__.py").chmod(0o777)
    without = InstalledPlugin("first", "acme_first", "acme-first", "1.0", plugin.package)
    assert discovery.inspect(without, Environment(), HOST).status is Status.REJECTED


def test_what_a_foreign_user_owns_is_rejected(plugin: Installed) -> None:
    """Only root can give files away: here everybody is foreign. All files pass one check."""
    found = only(on=replace(HOST, trusted_owners=frozenset({-1, -2})))
    assert found.reason.startswith(
        f"{plugin.package.parent} belongs to the user id {os.geteuid()}; allowed are -2, -1 (root,"
        " you, and the owner of core's files); reinstall it: "
    )


# What is accepted


def _move_library(plugin: Installed) -> None:
    (plugin.package / LIBRARY).rename(plugin.package / "libmoved.so")
    (plugin.package / LIBRARY).symlink_to(plugin.package / "libmoved.so")


HARMLESS: dict[str, Change] = {
    "library behind a link inside the package": _move_library,
    "linked folder inside the package": lambda p: (p.package / "same").symlink_to("lib"),
    "link to the package": lambda p: (p.package / "all").symlink_to("."),
    "link to nothing inside the package": lambda p: (p.package / ".#lock").symlink_to("nowhere"),
    "link to a file outside": _link_file,
    "package that is a link": _move_package,
    "folder where each user replaces own files": lambda p: (p.package / "lib").chmod(0o1777),
    "kernels that the manifest names": _name_kernels,
    "kernels of another name": lambda p: (p.package / "lib/libo_ascendc_dav-2201.so").touch(),
    "no library of kernels": lambda p: (p.package / "lib/libfirst_ascendc_dav-2201.txt").touch(),
    "same ABI": _forge(core_abi=[1, 3]),
    "no library, every platform": _forge(platform="any", library=None),
    "minor torch that is compared as a number": _forge(torch_target="2.9"),
    "distribution as pip compares it": _forge(distribution="Acme_First"),
}


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_what_is_no_danger_is_accepted(plugin: Installed, change: Change) -> None:
    change(plugin)
    assert only().reason == ""


@pytest.mark.parametrize(
    ("on", "forged"),
    [
        # Each minor number is compared as a number.
        ({"core_abi": (1, 10)}, {"core_abi": [1, 9]}),
        ({"torch": (3, 0)}, {"torch_target": "2.13"}),
        ({"torch": None}, {"torch_target": "9.9"}),
    ],
)
def test_older_needs_fit(plugin: Installed, on: dict[str, Any], forged: dict[str, Any]) -> None:
    plugin.forge(**forged)
    assert only(on=replace(HOST, **on)).reason == ""


# The host


def test_host_is_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = this_host(core="0.1.0", torch="2.13.0+cpu")
    assert (found.core_version, found.torch) == ("0.1.0", (2, 13))
    assert found.trusted_owners == {0, os.geteuid(), Path(host.__file__).stat().st_uid}
    assert this_host().torch is not None
    # A variable for cross-compiling.
    monkeypatch.setenv("_PYTHON_HOST_PLATFORM", "linux-toaster")
    assert this_host().platform == found.platform != ""
