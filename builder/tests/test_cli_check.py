"""custom-pypto check: what it says of wheels, right and wrong ones."""

from __future__ import annotations

import json
import os
import random
import stat
import struct
import subprocess
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_build.compiler import core_include
from custom_pypto_build.wheel_check import wheel_file
from custom_pypto_cli import main
from custom_pypto_contract import manifest, manylinux
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
    expected = ("core ABI 1.0", "first CPU", f"machine {MACHINE}", "entry point first = acme_first")
    assert {*expected} <= {*lines}


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


def _replace_in_library(old: bytes, new: bytes) -> Callable[[WheelDraft], object]:
    """Change the library; what replaces a text is as long."""

    def change(wheel: WheelDraft) -> None:
        assert wheel.files[LIBRARY].count(old) >= 1
        wheel.set_library(wheel.files[LIBRARY].replace(old, new))

    return change


ABI = b"custom_pypto\0\0\0\0"
SHA256 = "ab" * 32
# What is changed of a right wheel, and the only remark of its report.
CHANGES: dict[str, tuple[Callable[[WheelDraft], object], str]] = {
    "file that is not as RECORD says": (
        lambda wheel: wheel.record.update({f"{PACKAGE}/__init__.py": "sha256=AAAA"}),
        (
            "problem: RECORD: RECORD has another SHA-256 for acme_first/__init__.py, or the file is"
            " missing"
        ),
    ),
    "file of RECORD that is missing": (
        lambda wheel: wheel.record.update({"acme_first/gone.py": "sha256=AAAA"}),
        (
            "problem: RECORD: RECORD has another SHA-256 for acme_first/gone.py, or the file is"
            " missing"
        ),
    ),
    "file of RECORD that is missing and has no digest": (
        lambda wheel: wheel.record.update({"acme_first/gone.py": "sha256="}),
        (
            "problem: RECORD: RECORD has another SHA-256 for acme_first/gone.py, or the file is"
            " missing"
        ),
    ),
    "file that is a folder, too": (
        _with_files(**{f"{PACKAGE}/both": "", f"{PACKAGE}/both/inner.py": ""}),
        (
            "problem: paths: the wheel holds what an installer must not unpack: 'acme_first/both'"
            " is a file and a folder"
        ),
    ),
    "file in core's package behind .data": (
        _with_files(**{"acme_first-1.0.data/purelib/custom_pypto/__init__.py": ""}),
        "problem: packages: the wheel has files in custom_pypto, a package of custom_pypto itself",
    ),
    "file in core's package": (
        _with_files(**{"custom_pypto/__init__.py": ""}),
        "problem: packages: the wheel has files in custom_pypto, a package of custom_pypto itself",
    ),
    "other package": (
        _with_files(**{"tests/test_first.py": ""}),
        "note: packages: besides the plugin's package acme_first the wheel installs tests",
    ),
    "other version in METADATA": (
        _with_metadata("Version: 1.0", "Version: 1.1"),
        "problem: distribution: METADATA says acme-first 1.1, its file name says acme_first 1.0",
    ),
    "no name in METADATA": (
        _with_metadata("Name: acme-first\n", ""),
        "problem: distribution: METADATA gives no name or no version",
    ),
    "core is not required": (
        _with_metadata("custom-pypto-core>=0.1", "custom-pypto-core-of-acme"),
        (
            "problem: requires: the wheel does not require custom-pypto-core, without which its ops"
            " cannot be found"
        ),
    ),
    "no licence": (
        _with_metadata("License-Expression: Apache-2.0\n", ""),
        "note: licence: METADATA names no licence, so nobody knows what they may do with the wheel",
    ),
    "no file of the licence": (
        _with_metadata("License-File: LICENSE\n", ""),
        "note: licence: the wheel holds no text of its licence",
    ),
    "file of the licence that is missing": (
        _with_metadata("License-File: LICENSE", "License-File: COPYING"),
        "problem: licence: the wheel has no COPYING",
    ),
    "entry point that is a function": (
        _with_entry_points("first = acme_first:load"),
        "problem: entry point: 'acme_first:load' is no module",
    ),
    "entry point of a module that is missing": (
        _with_entry_points("first = acme_first.more"),
        "problem: entry point: the wheel does not hold the module 'acme_first.more'",
    ),
    "manifest of another plugin": (
        lambda wheel: wheel.forge(name="second", version="2.0"),
        "problem: manifest: the wheel is first of acme_first 1.0",
    ),
    "manifest that is none": (
        _with_files(**{f"{PACKAGE}/{manifest.FILE_NAME}": "{}"}),
        f"problem: manifest: {PACKAGE}/{manifest.FILE_NAME}: 'manifest_version' is missing",
    ),
    "manifest of another core ABI than the library": (
        lambda wheel: wheel.forge(core_abi=(1, 1)),
        (
            "problem: core ABI: the library was compiled with headers of core ABI 1.0, the manifest"
            " says 1.1"
        ),
    ),
    "library without a core ABI": (
        _replace_in_library(ABI, b"other" * 3 + b"\0"),
        "problem: core ABI: the library does not record the core ABI that it was compiled for",
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
        (
            "note: kernels: the build did not import the plugin, so nobody knows which ops have"
            " kernels"
        ),
    ),
    "library of another hash": (
        lambda wheel: wheel.forge(
            library=manifest.Library(LIBRARY.removeprefix(f"{PACKAGE}/"), SHA256)
        ),
        (
            "problem: lib/libcustom_pypto_first.so: the manifest says sha256 abababababababab...,"
            f" so core will refuse {LIBRARY}"
        ),
    ),
    "library that is none": (
        lambda wheel: wheel.set_library(b"text"),
        f"problem: library: {LIBRARY} is not a 64-bit ELF library",
    ),
    "library that does not export what core calls": (
        _replace_in_library(b"custom_pypto_register_v1", b"custom_pypto_register_v0"),
        "problem: exports: the library does not export custom_pypto_register_v1, which core calls",
    ),
    "platform that promises nothing": (
        lambda wheel: setattr(wheel, "platform", f"linux_{MACHINE}"),
        f"note: system: the tag linux_{MACHINE} promises no glibc, and package indexes refuse it",
    ),
}


@pytest.mark.parametrize(("change", "remark"), CHANGES.values(), ids=CHANGES)
def test_what_is_wrong_is_said(
    right: WheelDraft, check: Check, change: Callable[[WheelDraft], object], remark: str
) -> None:
    change(right)
    assert check(right) == [remark]


# Files


def _unicode_path(name: str, second: str) -> bytes:
    """Return the extra field of a ZIP entry by which some programs unpack it as `second`."""
    text = second.encode()
    return struct.pack("<HHBL", 0x7075, 5 + len(text), 1, zlib.crc32(name.encode())) + text


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("name", "kind", "second_name", "reason"),
    [
        ("late.py", stat.S_IFREG, "", "problem: RECORD does not list acme_first/late.py"),
        ("late.py", stat.S_IFREG, "../../evil.py", "'acme_first/late.py' has a second name"),
        ("link.py", stat.S_IFLNK, "", "'acme_first/link.py' is a link or a device"),
        ("__init__.py", stat.S_IFREG, "", "'acme_first/__init__.py' is there twice"),
    ],
)
def test_entry_that_was_added_to_the_archive(
    right: WheelDraft,
    tmp_path: Path,
    shown: Shown,
    name: str,
    kind: int,
    second_name: str,
    reason: str,
) -> None:
    path = right.write(tmp_path)
    entry = zipfile.ZipInfo(f"{PACKAGE}/{name}")
    if second_name:
        entry.extra = _unicode_path(entry.filename, second_name)
    entry.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(entry, "/etc/passwd")
    assert reason in shown(path, 1)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("../evil.py", "leads out of its folder"),
        ("/etc/evil.py", "is no path inside the wheel"),
        ("acme_first//evil.py", "leads out of its folder"),
        ("acme_first\\evil.py", "is no path inside the wheel"),
        ("acme_first/\x1b[2J.py", "is no path inside the wheel"),
    ],
)
def test_path_that_leads_out_of_the_wheel(
    right: WheelDraft, check: Check, name: str, fault: str
) -> None:
    right.files[name] = b""
    unsafe = [each for each in check(right) if ": paths: " in each]
    assert unsafe == [
        f"problem: paths: the wheel holds what an installer must not unpack: {name!r} {fault}"
    ]


# Metadata and manifest


def test_name_of_an_entry_point_that_cannot_name_a_plugin(right: WheelDraft, check: Check) -> None:
    _with_entry_points("First-Op = acme_first")(right)
    assert "problem: entry point: 'First-Op' cannot name a plugin" in check(right)


@pytest.mark.parametrize("lines", ["", "first = acme_first\nsecond = acme_first"])
def test_number_of_entry_points(right: WheelDraft, check: Check, lines: str) -> None:
    _with_entry_points(lines)(right)
    assert any(each.startswith("problem: entry point: the wheel has ") for each in check(right))


def test_abi_that_this_core_lacks_is_noted(right: WheelDraft, check: Check) -> None:
    old, new = (ABI + bytes([1, 0, 0, 0, minor]) for minor in (0, 1))
    _replace_in_library(old, new)(right)
    right.forge(core_abi=(1, 1))
    assert check(right) == [
        "note: core ABI: this core has the core ABI 1.0, and would not load the plugin"
    ]


def test_contract_that_cannot_be_read(right: WheelDraft, check: Check) -> None:
    [op] = right.manifest.ops
    rule = {"argument": "x", "check": "x.ndim ==", "when": None, "message": "m"}
    right.forge(ops=(ManifestOp(op.name, op.schema, {**op.contract, "rules": [rule]}),))
    [remark] = check(right)
    assert remark.startswith("problem: first: its contract cannot be read: ContractError: rules")


# The library


def test_library_that_is_missing(right: WheelDraft, check: Check) -> None:
    del right.files[LIBRARY]
    assert f"problem: library: the wheel has no {LIBRARY}, which its manifest names" in check(right)


@pytest.mark.parametrize(
    "platform", ["any", "manylinux_2_41_mips", "musllinux_1_2_x86_64", "win_amd64"]
)
def test_platform_on_which_the_library_does_not_run(
    right: WheelDraft, check: Check, platform: str
) -> None:
    right.platform = platform
    assert (
        f"problem: machine: the tag {platform} lets it be installed where the library does not run"
        in check(right)
    )


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
    assert check(right) == [
        (
            f"problem: system: the tag manylinux2014_{MACHINE} promises glibc 2.17 and its"
            " libstdc++, but the library needs GLIBC_2.25"
        )
    ]
    right.platform = f"manylinux_2_25_{MACHINE}"
    assert check(right) == []


def test_version_that_no_system_has(right: WheelDraft, check: Check) -> None:
    if MACHINE != "x86_64":
        return
    _replace_in_library(b"GLIBC_2.2.5\0", b"GLIBC_2X2.5\0")(right)
    assert check(right) == [
        "problem: system: the library needs GLIBC_2X2.5, which no system with a manylinux tag has"
    ]


@pytest.mark.parametrize(
    ("version", "glibc"),
    [
        ("GLIBC_2.34", (2, 34)),
        ("GLIBC_2.2.5", (2, 2)),
        ("GLIBCXX_3.4", (2, 5)),
        ("GLIBCXX_3.4.24", (2, 27)),
        ("GLIBCXX_3.4.26", (2, 31)),
        ("CXXABI_1.3.13", (2, 34)),
        ("GLIBCXX_3.4.999", manylinux.UNKNOWN),
        ("GLIBC_PRIVATE", manylinux.UNKNOWN),
        ("GCC_3.0", (2, 0)),
    ],
)
def test_glibc_that_comes_with_a_version(version: str, glibc: tuple[int, int]) -> None:
    assert manylinux.glibc_of(version) == glibc


def test_wheel_without_a_library_is_for_any_platform(check: Check) -> None:
    python = draft(None)
    python.platform = f"manylinux_2_41_{MACHINE}"
    assert check(python) == ["problem: library: the wheel is for one platform, but has no library"]


SYMBOL = (
    "problem: symbols: the library needs {}, not of PyTorch's stable ABI: it works with one version"
    " of what has them"
)
# Source, flags, and the only remark.
COMPILED = {
    "exported function": (
        f"{EXPORT} int answer(void) {{ return 42; }}",
        "",
        "problem: exports: the library exports answer, which another library could be bound to",
    ),
    "symbol of Python": (
        (
            "extern int PyObject_IsTrue(void*); int use(void) { return PyObject_IsTrue(0); }"
            f"{EXPORT} int custom_pypto_use(void) {{ return use(); }}"
        ),
        "",
        SYMBOL.format("PyObject_IsTrue"),
    ),
    "symbol of ATen": (
        (
            "extern int _ZN2at6Tensor3addEv(void);"
            f"{EXPORT} int custom_pypto_use(void) {{ return _ZN2at6Tensor3addEv(); }}"
        ),
        "",
        SYMBOL.format("_ZN2at6Tensor3addEv"),
    ),
    "folder of its author": (
        "",
        "-Wl,-rpath,/home/author/lib",
        (
            "problem: libraries: the library looks for others in /home/author/lib, a folder of the"
            " machine that it was built on"
        ),
    ),
    "other library": (
        "",
        "-Wl,--no-as-needed -lresolv",
        (
            "problem: libraries: the library needs libresolv.so.2, which neither PyTorch's stable"
            " ABI nor every Linux has"
        ),
    ),
}


@pytest.mark.parametrize(("source", "flags", "remark"), COMPILED.values(), ids=COMPILED)
def test_what_a_library_must_not_have(
    right: WheelDraft, check: Check, compiled: Compile, source: str, flags: str, remark: str
) -> None:
    right.set_library(compiled(source, *flags.split()))
    assert check(right) == [remark]


# No wheel


def _without_metadata(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.py", "")


WHEEL = "a-1-py3-none-any.whl"
# Its name, how it is made, and the reason.
UNREADABLE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "other name": ("plugin.zip", Path.touch, "plugin.zip is not named as a wheel"),
    "empty": (WHEEL, Path.touch, "is no zip archive"),
    "no archive": (WHEEL, lambda path: path.write_bytes(b"PK" * 100), "is no zip archive"),
    "missing": (WHEEL, lambda path: None, "cannot be read: [Errno 2] No such file"),
    # It is not waited for.
    "pipe": (WHEEL, os.mkfifo, "is not a regular file"),
    "no metadata": (
        WHEEL,
        _without_metadata,
        "must have one folder of metadata (.dist-info), and has 0",
    ),
}


@pytest.mark.parametrize(("name", "make", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_no_wheel_has_status_2(
    tmp_path: Path, shown: Shown, name: str, make: Callable[[Path], object], reason: str
) -> None:
    make(tmp_path / name)
    error = shown(tmp_path / name)
    assert error.startswith(f"custom-pypto check: {tmp_path / name} ")
    assert reason in error


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    [
        ("MOST_FILES", 3, "files; at most 3 are read"),
        ("MOST_BYTES", 1000, "bytes when unpacked; at most 1000 are read"),
        ("_MOST_DIRECTORY", 50, "bytes; at most 50 are read"),
    ],
)
def test_wheel_that_is_too_large_has_status_2(
    right: WheelDraft,
    tmp_path: Path,
    shown: Shown,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
    reason: str,
) -> None:
    monkeypatch.setattr(wheel_file, limit, most)
    assert reason in shown(right.write(tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        *(f"{INFO}/{each}" for each in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")),
        f"{PACKAGE}/{manifest.FILE_NAME}",
        LIBRARY,
        f"{INFO}/licenses/LICENSE",
    ],
)
def test_a_file_that_is_longer_than_the_directory_claims_is_not_unpacked(
    right: WheelDraft, tmp_path: Path, shown: Shown, name: str
) -> None:
    begin, claimed = right.files.get(name, b"")[:41], 41
    begin += b"\n" * (claimed - len(begin))
    path = right.write(tmp_path)
    with zipfile.ZipFile(path) as archive:
        others = {each: archive.read(each) for each in archive.namelist() if each != name}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, contents in others.items():
            archive.writestr(each, contents)
        archive.writestr(name, begin + bytes(128 << 20))
    contents = bytearray(path.read_bytes())
    # Its checksum, sizes and name in the directory, which comes last.
    entry = contents.rindex(name.encode()) - 46
    struct.pack_into("<L", contents, entry + 16, zlib.crc32(begin))
    struct.pack_into("<L", contents, entry + 24, claimed)
    path.write_bytes(contents)
    tracemalloc.start()
    try:
        assert f"cannot be read: Bad CRC-32 for file {name!r}" in shown(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_changed_bytes_give_a_report_or_status_2(
    right: WheelDraft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = right.write(tmp_path)
    contents = path.read_bytes()
    draw = random.Random(21)
    statuses = set()
    for _ in range(60):
        changed = bytearray(contents)
        # Most of what is checked is at the end: the directory.
        for place in draw.choices(range(len(contents)), range(len(contents)), k=3):
            changed[place] = draw.randrange(256)
        path.write_bytes(changed)
        statuses.add(main(["check", str(path)]))
    capsys.readouterr()
    assert statuses <= {0, 1, 2}
    assert 2 in statuses
