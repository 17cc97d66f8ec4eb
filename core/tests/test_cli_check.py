"""custom-pypto check: what it says of wheels, right and wrong ones."""

from __future__ import annotations

import json
import os
import random
import stat
import struct
import subprocess
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from custom_pypto_build.compiler import core_include
from custom_pypto_cli import main, wheel_file
from custom_pypto_contract import manifest, manylinux
from custom_pypto_contract.manifest import ManifestOp
from wheel_factory import INFO, LIBRARY, MACHINE, METADATA, PACKAGE, WheelDraft, draft

Check = Callable[[WheelDraft], list[str]]
Compile = Callable[..., bytes]

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


def test_right_wheel_is_healthy(
    right: WheelDraft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(right.write(tmp_path))]) == 0
    shown = capsys.readouterr().out
    assert "Healthy: no problem was found." in shown
    assert "problem:" not in shown
    assert "note:" not in shown
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert {
        "core ABI 1.0",
        "first CPU",
        f"machine {MACHINE}",
        "entry point first = acme_first",
    } <= {*lines}


def test_right_wheel_without_a_library_is_healthy(check: Check) -> None:
    assert check(draft(None)) == []


# Files


def test_changed_file_is_named(right: WheelDraft, check: Check) -> None:
    right.record[f"{PACKAGE}/__init__.py"] = "sha256=AAAA"
    assert check(right) == [
        (
            f"problem: RECORD: RECORD has another SHA-256 for {PACKAGE}/__init__.py, or the file is"
            " missing"
        )
    ]


@pytest.mark.parametrize("digest", ["sha256=AAAA", "sha256="])
def test_file_that_record_lists_must_be_there(right: WheelDraft, check: Check, digest: str) -> None:
    right.record["acme_first/gone.py"] = digest
    assert check(right) == [
        "problem: RECORD: RECORD has another SHA-256 for acme_first/gone.py, or the file is missing"
    ]


def test_file_that_record_does_not_list(
    right: WheelDraft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = right.write(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{PACKAGE}/late.py", "")
    assert main(["check", str(path)]) == 1
    assert f"problem: RECORD does not list {PACKAGE}/late.py" in capsys.readouterr().out


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


def test_link_is_no_file(
    right: WheelDraft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = right.write(tmp_path)
    link = zipfile.ZipInfo(f"{PACKAGE}/link.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    assert main(["check", str(path)]) == 1
    assert "'acme_first/link.py' is a link or a device" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_file_that_is_there_twice(
    right: WheelDraft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = right.write(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{PACKAGE}/__init__.py", "other")
    assert main(["check", str(path)]) == 1
    assert "'acme_first/__init__.py' is there twice" in capsys.readouterr().out


def test_file_with_a_second_name(
    right: WheelDraft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = right.write(tmp_path)
    name, other = f"{PACKAGE}/late.py", b"../../evil.py"
    entry = zipfile.ZipInfo(name)
    entry.extra = struct.pack("<HHBL", 0x7075, 5 + len(other), 1, zlib.crc32(name.encode())) + other
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(entry, "")
    assert main(["check", str(path)]) == 1
    assert "'acme_first/late.py' has a second name" in capsys.readouterr().out


def test_file_that_is_a_folder_too(right: WheelDraft, check: Check) -> None:
    right.files |= {f"{PACKAGE}/both": b"", f"{PACKAGE}/both/inner.py": b""}
    assert check(right) == [
        (
            "problem: paths: the wheel holds what an installer must not unpack: 'acme_first/both'"
            " is a file and a folder"
        )
    ]


@pytest.mark.parametrize("folder", ["", "acme_first-1.0.data/purelib/"])
def test_file_in_cores_package(right: WheelDraft, check: Check, folder: str) -> None:
    right.files[f"{folder}custom_pypto/__init__.py"] = b""
    assert check(right) == [
        "problem: packages: the wheel has files in custom_pypto, which is custom-pypto-core's own"
    ]


def test_other_packages_are_noted(right: WheelDraft, check: Check) -> None:
    right.files["tests/test_first.py"] = b""
    assert check(right) == [
        "note: packages: besides the plugin's package acme_first the wheel installs tests"
    ]


# Metadata


def _metadata(made: WheelDraft, old: str, new: str) -> None:
    assert old in METADATA
    made.files[f"{INFO}/METADATA"] = METADATA.replace(old, new).encode()


@pytest.mark.parametrize(
    ("old", "new", "remark"),
    [
        (
            "Version: 1.0",
            "Version: 1.1",
            (
                "problem: distribution: METADATA says acme-first 1.1, its file name says acme_first"
                " 1.0"
            ),
        ),
        ("Name: acme-first\n", "", "problem: distribution: METADATA gives no name or no version"),
        (
            "Requires-Dist: custom-pypto-core>=0.1",
            "Requires-Dist: custom-pypto-core-of-acme",
            (
                "problem: requires: the wheel does not require custom-pypto-core, without which"
                " its ops cannot be found"
            ),
        ),
        (
            "License-Expression: Apache-2.0\n",
            "",
            (
                "note: licence: METADATA names no licence, so nobody knows what they may do"
                " with the wheel"
            ),
        ),
        (
            "License-File: LICENSE\n",
            "",
            "note: licence: the wheel holds no text of its licence",
        ),
        (
            "License-File: LICENSE\n",
            "License-File: COPYING\n",
            "problem: licence: the wheel has no COPYING",
        ),
    ],
)
def test_wrong_metadata(right: WheelDraft, check: Check, old: str, new: str, remark: str) -> None:
    _metadata(right, old, new)
    assert check(right) == [remark]


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("first = acme_first:load", "'acme_first:load' is no module"),
        ("first = acme_first.more", "the wheel does not hold the module 'acme_first.more'"),
        ("First-Op = acme_first", "'First-Op' cannot name a plugin"),
    ],
)
def test_wrong_entry_point(right: WheelDraft, check: Check, line: str, remark: str) -> None:
    right.files[f"{INFO}/entry_points.txt"] = f"[{manifest.GROUP}]\n{line}\n".encode()
    assert f"problem: entry point: {remark}" in check(right)


@pytest.mark.parametrize("lines", ["", "first = acme_first\nsecond = acme_first\n"])
def test_number_of_entry_points(right: WheelDraft, check: Check, lines: str) -> None:
    right.files[f"{INFO}/entry_points.txt"] = f"[{manifest.GROUP}]\n{lines}".encode()
    assert any(each.startswith("problem: entry point: the wheel has ") for each in check(right))


# The plugin


def test_manifest_of_another_plugin(right: WheelDraft, check: Check) -> None:
    right.forge(name="second", version="2.0")
    assert check(right) == ["problem: manifest: the wheel is first of acme_first 1.0"]


def test_wheel_without_a_manifest(right: WheelDraft, check: Check) -> None:
    right.files[f"{PACKAGE}/{manifest.FILE_NAME}"] = b"{}"
    assert check(right) == [
        f"problem: manifest: {PACKAGE}/{manifest.FILE_NAME}: 'manifest_version' is missing"
    ]


def test_abi_of_the_library_and_of_the_manifest_must_be_equal(
    right: WheelDraft, check: Check
) -> None:
    right.forge(core_abi=(1, 1))
    assert check(right) == [
        (
            "problem: core ABI: the library was compiled with headers of core ABI 1.0, the manifest"
            " says 1.1"
        )
    ]


def test_abi_that_this_core_lacks_is_noted(
    right: WheelDraft, check: Check, plugin_library: Path
) -> None:
    contents = plugin_library.read_bytes()
    old, new = (b"custom_pypto\0\0\0\0" + bytes([1, 0, 0, 0, minor]) for minor in (0, 1))
    assert contents.count(old) == 1
    right.set_library(contents.replace(old, new))
    right.forge(core_abi=(1, 1))
    assert check(right) == [
        "note: core ABI: this core has the core ABI 1.0, and would not load the plugin"
    ]


def test_library_without_an_abi(right: WheelDraft, check: Check, plugin_library: Path) -> None:
    right.set_library(
        plugin_library.read_bytes().replace(b"custom_pypto\0\0\0\0", b"other" * 3 + b"\0")
    )
    assert check(right) == [
        "problem: core ABI: the library does not record the core ABI that it was compiled for"
    ]


def test_contract_that_cannot_be_read(right: WheelDraft, check: Check) -> None:
    [op] = right.manifest.ops
    rule = {"argument": "x", "check": "x.ndim ==", "when": None, "message": "m"}
    right.forge(ops=(ManifestOp(op.name, op.schema, {**op.contract, "rules": [rule]}),))
    [remark] = check(right)
    assert remark.startswith("problem: first: its contract cannot be read: ContractError: rules")


@pytest.mark.parametrize("keys", [[], ["Meta"]])
def test_op_without_a_kernel(right: WheelDraft, check: Check, keys: list[str]) -> None:
    right.forge(kernels={"first": keys})
    assert check(right) == ["problem: first: first has no kernel for any device"]


def test_kernels_that_nobody_saw_are_noted(right: WheelDraft, check: Check) -> None:
    right.forge(kernels=None)
    assert check(right) == [
        "note: kernels: the build did not import the plugin, so nobody knows which ops have kernels"
    ]


# The library


def test_library_that_was_changed(right: WheelDraft, check: Check) -> None:
    sha256 = "ab" * 32
    right.forge(library=manifest.Library("lib/libcustom_pypto_first.so", sha256))
    assert check(right) == [
        (
            "problem: lib/libcustom_pypto_first.so: the manifest says sha256"
            f" abababababababab..., so core will refuse {LIBRARY}"
        )
    ]


def test_library_that_is_none(right: WheelDraft, check: Check) -> None:
    right.set_library(b"text")
    assert check(right) == [f"problem: library: {LIBRARY} is not a 64-bit ELF library"]


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


def test_version_that_no_system_has(right: WheelDraft, check: Check, plugin_library: Path) -> None:
    # Of the length of the name that it replaces.
    contents = plugin_library.read_bytes()
    assert b"GLIBC_2.2.5\0" in contents or MACHINE != "x86_64"
    right.set_library(contents.replace(b"GLIBC_2.2.5\0", b"GLIBC_2X2.5\0"))
    expected = [
        "problem: system: the library needs GLIBC_2X2.5, which no system with a manylinux tag has"
    ]
    assert check(right) == (expected if MACHINE == "x86_64" else [])


def test_platform_that_promises_nothing_is_noted(right: WheelDraft, check: Check) -> None:
    right.platform = f"linux_{MACHINE}"
    assert check(right) == [
        f"note: system: the tag linux_{MACHINE} promises no glibc, and package indexes refuse it"
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


@pytest.mark.parametrize(
    ("source", "remark"),
    [
        (
            f"{EXPORT} int answer(void) {{ return 42; }}",
            "problem: exports: the library exports answer, which another library could be bound to",
        ),
        (
            (
                "extern int PyObject_IsTrue(void*); int use(void) { return PyObject_IsTrue(0); }"
                f"{EXPORT} int custom_pypto_use(void) {{ return use(); }}"
            ),
            (
                "problem: symbols: the library needs PyObject_IsTrue, not of PyTorch's stable"
                " ABI: it works with one version of what has them"
            ),
        ),
        (
            (
                "extern int _ZN2at6Tensor3addEv(void);"
                f"{EXPORT} int custom_pypto_use(void) {{ return _ZN2at6Tensor3addEv(); }}"
            ),
            (
                "problem: symbols: the library needs _ZN2at6Tensor3addEv, not of PyTorch's"
                " stable ABI: it works with one version of what has them"
            ),
        ),
    ],
)
def test_symbols_that_a_plugin_must_not_have(
    right: WheelDraft,
    check: Check,
    compiled: Compile,
    source: str,
    remark: str,
) -> None:
    right.set_library(compiled(source))
    assert check(right) == [remark]


def test_functions_that_core_calls_must_be_exported(
    right: WheelDraft, check: Check, plugin_library: Path
) -> None:
    contents = plugin_library.read_bytes()
    right.set_library(contents.replace(b"custom_pypto_register_v1", b"custom_pypto_register_v0"))
    assert check(right) == [
        "problem: exports: the library does not export custom_pypto_register_v1, which core calls"
    ]


def test_library_that_looks_in_a_folder_of_its_author(
    right: WheelDraft, check: Check, compiled: Compile
) -> None:
    right.set_library(compiled("", "-Wl,-rpath,/home/author/lib"))
    assert check(right) == [
        (
            "problem: libraries: the library looks for others in /home/author/lib, a folder of the"
            " machine that it was built on"
        )
    ]


def test_library_that_needs_another_one(right: WheelDraft, check: Check, compiled: Compile) -> None:
    right.set_library(compiled("", "-Wl,--no-as-needed", "-lresolv"))
    assert check(right) == [
        (
            "problem: libraries: the library needs libresolv.so.2, which neither PyTorch's"
            " stable ABI nor every Linux has"
        )
    ]


# No wheel


@pytest.mark.parametrize(
    ("name", "contents", "reason"),
    [
        ("plugin.zip", b"", "is not named as a wheel"),
        ("a-1-py3-none-any.whl", b"", "is no zip archive"),
        ("a-1-py3-none-any.whl", b"PK" * 100, "is no zip archive"),
    ],
)
def test_what_is_no_wheel_has_status_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    contents: bytes,
    reason: str,
) -> None:
    path = tmp_path / name
    path.write_bytes(contents)
    assert main(["check", str(path)]) == 2
    assert f"custom-pypto check: {path} {reason}" in capsys.readouterr().err


def test_file_that_is_not_there_has_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path / "a-1-py3-none-any.whl")]) == 2
    assert "cannot be read: [Errno 2] No such file" in capsys.readouterr().err


def test_pipe_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "a-1-py3-none-any.whl"
    os.mkfifo(pipe)
    assert main(["check", str(pipe)]) == 2
    assert "is not a regular file" in capsys.readouterr().err


def test_archive_without_metadata_has_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.py", "")
    assert main(["check", str(path)]) == 2
    assert "must have one folder of metadata (.dist-info), and has 0" in capsys.readouterr().err


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
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    most: int,
    reason: str,
) -> None:
    monkeypatch.setattr(wheel_file, limit, most)
    assert main(["check", str(right.write(tmp_path))]) == 2
    assert reason in capsys.readouterr().err


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
