"""custom-pypto check: what it says of wheels, right and wrong ones."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_build.compiler import core_include
from custom_pypto_build.wheel_check import unpacked_wheel
from custom_pypto_cli import main
from custom_pypto_contract import manifest
from custom_pypto_contract.manifest import ManifestOp
from wheel_factory import INFO, LIBRARY, MACHINE, METADATA, PACKAGE, WheelDraft, draft

Check = Callable[[WheelDraft], list[str]]
Compile = Callable[..., bytes]
Shown = Callable[..., str]

EXPORT = '__attribute__((visibility("default")))'
ENTRY = f"""
#include <custom_pypto/abi.h>
CUSTOM_PYPTO_RECORD_ABI
{EXPORT} int custom_pypto_register_v1(char* e, unsigned long n) {{ return 0; }}
{EXPORT} void custom_pypto_unregister_v1(void) {{}}
"""


@pytest.fixture
def right(plugin_library: Path) -> WheelDraft:
    return draft(plugin_library.read_bytes())


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Shown:
    """Check a file, which ends with a status, and return what is printed."""

    def run(path: Path, status: int = 2) -> str:
        assert main(["check", str(path)]) == status
        return "".join(capsys.readouterr())

    return run


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """Write a wheel and return what its report says: level, probe and remark."""

    def run(made: WheelDraft) -> list[str]:
        status = main(["check", "--json", str(made.write(tmp_path))])
        report = json.loads(capsys.readouterr().out)
        probes = [probe for section in report["sections"].values() for probe in section]
        problems = [probe for probe in probes if probe["level"] == "problem"]
        assert status == (1 if problems else 0)
        assert report["healthy"] is not problems
        assert all(probe["advice"] for probe in probes if probe["remark"])
        return [
            f"{each['level']}: {each['name']}: {each['remark']}"
            for each in probes
            if each["remark"]
        ]

    return run


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """Compile C source to a library with the two functions of a plugin."""

    def run(source: str, *flags: str) -> bytes:
        path = tmp_path / "library.c"
        path.write_text(ENTRY + source, encoding="utf-8")
        command = [*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-fvisibility=hidden"]
        output = tmp_path / "library.so"
        subprocess.run([*command, f"-I{core_include()}", path, *flags, "-o", output], check=True)
        return output.read_bytes()

    return run


def test_right_wheel_is_healthy(right: WheelDraft, tmp_path: Path, shown: Shown) -> None:
    report = shown(right.write(tmp_path), 0)
    assert "Healthy: no problem was found." in report
    assert "problem:" not in report
    assert "note:" not in report
    lines = [" ".join(line.split()) for line in report.splitlines()]
    expected = ("first CPU", f"machine {MACHINE}", "entry point first = acme_first")
    assert {"inspection by core accepted", *expected} <= {*lines}


def test_right_wheel_without_a_library_is_healthy(check: Check) -> None:
    assert check(draft(None)) == []


def _with_files(**files: str) -> Callable[[WheelDraft], object]:
    return lambda wheel: wheel.files.update({n: each.encode() for n, each in files.items()})


def _with_entry_points(lines: str) -> Callable[[WheelDraft], object]:
    text = f"[{manifest.GROUP}]\n{lines}\n"
    return _with_files(**{f"{INFO}/entry_points.txt": text})


def _with_metadata(old: str, new: str) -> Callable[[WheelDraft], object]:
    assert old in METADATA
    return _with_files(**{f"{INFO}/METADATA": METADATA.replace(old, new)})


def _with_rule(wheel: WheelDraft) -> None:
    """Put a rule into the contract that is no expression."""
    [op] = wheel.manifest.ops
    rule = {"argument": "x", "check": "x.ndim ==", "when": None, "message": "m"}
    wheel.forge(ops=(ManifestOp(op.name, op.schema, {**op.contract, "rules": [rule]}),))


def _for(platform: str) -> Callable[[WheelDraft], object]:
    return lambda wheel: setattr(wheel, "platform", platform)


OTHER_MACHINE = "problem: machine: the tag {} lets it be installed where the library does not run"
ENTRY_POINTS = "problem: entry point: the wheel has {} entry points in the group"
NO_LICENCE = "note: licence: the wheel does not name its licence, or has no text of it"
# What is changed of a right wheel, and how the only remark of its report begins.
CHANGES: dict[str, tuple[Callable[[WheelDraft], object], str]] = {
    "file that is not as RECORD says": (
        lambda wheel: wheel.record.update({f"{PACKAGE}/__init__.py": "sha256=AAAA"}),
        "problem: wheel: the files are not as RECORD says: acme_first/__init__.py",
    ),
    "file of RECORD that is missing": (
        lambda wheel: wheel.record.update({"acme_first/gone.py": "sha256="}),
        "problem: wheel: the files are not as RECORD says: acme_first/gone.py",
    ),
    "file in core's package": (
        _with_files(**{"custom_pypto/__init__.py": ""}),
        "problem: packages: the wheel has files in custom_pypto, a package of custom_pypto itself",
    ),
    "other package": (
        _with_files(**{"tests/test_first.py": ""}),
        "note: packages: the wheel installs acme_first, tests into site-packages",
    ),
    "core is not required": (
        _with_metadata("custom-pypto-core>=0.1", "custom-pypto-core-of-acme"),
        "problem: requires: the wheel does not require custom-pypto-core",
    ),
    "no licence": (_with_metadata("License-Expression: Apache-2.0\n", ""), NO_LICENCE),
    "no file of the licence": (_with_metadata("License-File: LICENSE\n", ""), NO_LICENCE),
    "file of the licence that is missing": (
        _with_metadata("License-File: LICENSE", "License-File: COPYING"),
        "problem: licence: the wheel has no COPYING",
    ),
    "no entry point": (_with_entry_points(""), ENTRY_POINTS.format(0)),
    "two entry points": (
        _with_entry_points("first = acme_first\nsecond = acme_first"),
        ENTRY_POINTS.format(2),
    ),
    "other version in METADATA": (
        _with_metadata("Version: 1.0", "Version: 1.1"),
        "problem: inspection by core: its files are of version 1.0, but acme-first 1.1 is",
    ),
    "manifest of another plugin": (
        lambda wheel: wheel.forge(name="second"),
        "problem: inspection by core: its entry point calls it 'first', its manifest 'second'",
    ),
    "manifest that is none": (
        _with_files(**{f"{PACKAGE}/{manifest.FILE_NAME}": "{}"}),
        f"problem: inspection by core: {PACKAGE}/{manifest.FILE_NAME}: 'manifest_version'",
    ),
    "core ABI that this core lacks": (
        lambda wheel: wheel.forge(core_abi=(1, 1)),
        "problem: inspection by core: requires core ABI 1.1, but custom-pypto-core",
    ),
    "op without a kernel": (
        lambda wheel: wheel.forge(kernels={"first": []}),
        "problem: first: first has no kernel for any device",
    ),
    "op with a fake alone": (
        lambda wheel: wheel.forge(kernels={"first": ["Meta"]}),
        "problem: first: first has no kernel for any device",
    ),
    "kernels that nobody saw": (
        lambda wheel: wheel.forge(kernels=None),
        "note: kernels: the build did not import the plugin",
    ),
    "contract that cannot be read": (
        _with_rule,
        "problem: first: its contract cannot be read: ContractError: rules",
    ),
}
# The same of a wheel with a library.
LIBRARY_CHANGES: dict[str, tuple[Callable[[WheelDraft], object], str]] = {
    "library of another hash": (
        lambda wheel: wheel.forge(
            library=manifest.Library(LIBRARY.removeprefix(f"{PACKAGE}/"), "ab" * 32)
        ),
        f"problem: inspection by core: its library {LIBRARY} is not the one it was built with",
    ),
    "manifest for another processor": (
        lambda wheel: wheel.forge(platform="linux_mips"),
        "problem: inspection by core: was built for linux_mips",
    ),
    "tag of any platform": (_for("any"), OTHER_MACHINE.format("any")),
    "tag of another processor": (
        _for(f"manylinux_2_41_{MACHINE}.manylinux_2_41_mips"),
        OTHER_MACHINE.format("manylinux_2_41_mips"),
    ),
    "tag of another system": (_for("win_amd64"), OTHER_MACHINE.format("win_amd64")),
    "tag that promises nothing": (
        _for(f"linux_{MACHINE}"),
        f"note: system: the tag linux_{MACHINE} promises no glibc, and package indexes refuse it",
    ),
}


@pytest.mark.parametrize(("change", "remark"), CHANGES.values(), ids=CHANGES)
def test_what_is_wrong_is_said(
    check: Check, change: Callable[[WheelDraft], object], remark: str
) -> None:
    python = draft(None)
    change(python)
    [said] = check(python)
    assert said.startswith(remark)


@pytest.mark.parametrize(("change", "remark"), LIBRARY_CHANGES.values(), ids=LIBRARY_CHANGES)
def test_what_is_wrong_with_a_library_is_said(
    right: WheelDraft, check: Check, change: Callable[[WheelDraft], object], remark: str
) -> None:
    change(right)
    [said] = check(right)
    assert said.startswith(remark)


def test_wheel_without_a_library_is_for_any_platform(check: Check) -> None:
    python = draft(None)
    python.platform = f"manylinux_2_41_{MACHINE}"
    [said] = check(python)
    assert (
        said == "problem: machine: the wheel is for one platform, and no library in it can be read"
    )


def test_library_that_is_missing(right: WheelDraft, check: Check) -> None:
    del right.files[LIBRARY]
    missing, unread = check(right)
    assert missing == f"problem: inspection by core: its library {LIBRARY} is missing"
    assert unread.startswith("problem: machine: ")


def test_platform_that_promises_an_older_glibc(
    right: WheelDraft, check: Check, compiled: Compile
) -> None:
    right.set_library(
        compiled(
            "#include <sys/random.h>\n"
            f"{EXPORT} int custom_pypto_draw(void* to) {{ return getrandom(to, 1, 0); }}"
        )
    )
    right.platform = f"manylinux2014_{MACHINE}.manylinux_2_41_{MACHINE}"
    [said] = check(right)
    assert said.startswith(f"problem: system: the tag manylinux2014_{MACHINE} promises older")
    right.platform = f"manylinux_2_26_{MACHINE}"
    assert check(right) == []


def test_without_auditwheel_the_systems_are_not_known(
    right: WheelDraft, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "auditwheel", None)
    [said] = check(right)
    assert said.startswith("note: system: auditwheel is not installed")


STABLE = "problem: symbols: the library needs {}, not of PyTorch's stable ABI"
# Source, flags, and the only remark.
COMPILED = {
    "symbol of Python": (
        (
            "extern int PyObject_IsTrue(void*);"
            f"{EXPORT} int custom_pypto_use(void) {{ return PyObject_IsTrue(0); }}"
        ),
        "",
        STABLE.format("PyObject_IsTrue"),
    ),
    "symbol of ATen": (
        (
            "extern int _ZN2at6Tensor3addEv(void);"
            f"{EXPORT} int custom_pypto_use(void) {{ return _ZN2at6Tensor3addEv(); }}"
        ),
        "",
        STABLE.format("_ZN2at6Tensor3addEv"),
    ),
    "folder of its author": (
        "",
        "-Wl,-rpath,/home/author/lib",
        "problem: folders: the library looks for others in /home/author/lib",
    ),
    "other library": (
        "",
        "-Wl,--no-as-needed -lgomp",
        "problem: libraries: the library needs libgomp.so.1, which not every Linux has",
    ),
}


@pytest.mark.parametrize(("source", "flags", "remark"), COMPILED.values(), ids=COMPILED)
def test_what_a_library_must_not_have(
    right: WheelDraft, check: Check, compiled: Compile, source: str, flags: str, remark: str
) -> None:
    right.set_library(compiled(source, *flags.split()))
    assert check(right) == [remark]


def _leading_to(name: str) -> Callable[[Path], object]:
    """Return what writes a wheel with a file of that name."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "")

    return write


def _endless(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(1 << 20))


WHEEL = "a-1-py3-none-any.whl"
# Its name, how it is made, and the reason.
REFUSED: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "other name": ("plugin.zip", Path.touch, "is not named as a wheel"),
    "no archive": (WHEEL, lambda path: path.write_bytes(b"PK" * 100), "File is not a zip file"),
    "missing": (WHEEL, lambda path: None, "cannot be unpacked: [Errno 2] No such file"),
    # It is not waited for.
    "pipe": (WHEEL, os.mkfifo, "is not a regular file"),
    "no metadata": (WHEEL, _leading_to("a.py"), "must have one folder of metadata"),
    "path above the folder": (WHEEL, _leading_to("../evil.py"), "lead out of it: '../evil.py'"),
    "absolute path": (WHEEL, _leading_to("/etc/evil.py"), "lead out of it: '/etc/evil.py'"),
    "path of Windows": (WHEEL, _leading_to("a\\..\\evil"), "lead out of it: 'a\\\\..\\\\evil'"),
    "path for a terminal": (WHEEL, _leading_to("a\x1b[2J"), "lead out of it: 'a\\x1b[2J'"),
    "much larger unpacked": (WHEEL, _endless, "1048576 bytes when unpacked; at most"),
}


@pytest.mark.parametrize(("name", "make", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_unpacked_has_status_2(
    tmp_path: Path, shown: Shown, name: str, make: Callable[[Path], object], reason: str
) -> None:
    make(tmp_path / name)
    error = shown(tmp_path / name)
    assert error.startswith(f"custom-pypto check: {tmp_path / name} ")
    assert reason in error
    assert not [*tmp_path.rglob("evil*")]


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    [
        ("MOST_FILES", 3, "files; at most 3 are unpacked"),
        ("MOST_BYTES", 1000, "bytes when unpacked; at most 1000 are unpacked"),
    ],
)
def test_wheel_that_is_too_large_has_status_2(
    tmp_path: Path,
    shown: Shown,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
    reason: str,
) -> None:
    monkeypatch.setattr(unpacked_wheel, limit, most)
    assert reason in shown(draft(None).write(tmp_path))


def test_changed_bytes_give_a_report_or_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = draft(None).write(tmp_path)
    contents = path.read_bytes()
    draw = random.Random(21)
    statuses = set()
    for _ in range(60):
        changed = bytearray(contents)
        for place in draw.choices(range(len(contents)), k=3):
            changed[place] = draw.randrange(256)
        path.write_bytes(changed)
        statuses.add(main(["check", str(path)]))
    capsys.readouterr()
    assert statuses <= {0, 1, 2}
    assert 2 in statuses
