"""custom-pypto check: what it says of wheels, right and wrong ones."""

import json
import os
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
    """Write a wheel and return what its report says: level, check and remark."""

    def run(made: WheelDraft) -> list[str]:
        status = main(["check", "--json", str(made.write(tmp_path))])
        report = json.loads(capsys.readouterr().out)
        checks = [check for section in report["sections"].values() for check in section]
        problems = [check for check in checks if check["level"] == "problem"]
        assert status == (1 if problems else 0)
        assert report["healthy"] is (not problems)
        assert all(check["advice"] for check in checks if check["remark"])
        return ["{level}: {name}: {remark}".format(**each) for each in checks if each["remark"]]

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


Change = Callable[[WheelDraft], object]


def _with_files(**files: str) -> Change:
    return lambda wheel: wheel.files.update({n: each.encode() for n, each in files.items()})


def _with_entry_points(lines: str) -> Change:
    return _with_files(**{f"{INFO}/entry_points.txt": f"[{manifest.GROUP}]\n{lines}\n"})


@pytest.mark.parametrize(
    "file", ["__init__.py", "x/y.py", "x.cpython-310-x86_64-linux-gnu.so", "x.abi3.so"]
)
def test_right_wheel_without_a_library_is_healthy(check: Check, file: str) -> None:
    wheel = draft(None)
    _with_entry_points("first = acme_first" + ".x" * file.startswith("x"))(wheel)
    _with_files(**{f"{PACKAGE}/{file}": ""})(wheel)
    assert check(wheel) == []


def _with_metadata(old: str, new: str) -> Change:
    assert old in METADATA
    return _with_files(**{f"{INFO}/METADATA": METADATA.replace(old, new)})


def _with_record(name: str, digest: str) -> Change:
    return lambda wheel: wheel.record.update({f"{PACKAGE}/{name}": digest})


def _forged(**changes: object) -> Change:
    return lambda wheel: wheel.forge(**changes)


def _with_rule(wheel: WheelDraft) -> None:
    """Put a rule into the contract that is no expression."""
    [op] = wheel.manifest.ops
    rule = {"argument": "x", "check": "x.ndim ==", "when": None, "message": "m"}
    wheel.forge(ops=(ManifestOp(op.name, op.schema, {**op.contract, "rules": [rule]}),))


def _for(platform: str) -> Change:
    return lambda wheel: setattr(wheel, "platform", platform)


OTHER_MACHINE = "problem: machine: the tag {} lets it be installed where the library does not run"
ENTRY_POINTS = "problem: entry point: the wheel has 2 entry points in the group"
NO_LICENCE = "note: licence: the wheel does not name its licence, or has no text of it"
RECORD = "problem: wheel: the files are not as RECORD says: acme_first/"
REFUSED_BY_CORE = "problem: inspection by core:"
TWO = "first = acme_first\nsecond = acme_first"
NEWER_GLIBC = f"manylinux_2_41_{MACHINE}"
# What is changed of a right wheel, and how the only remark of its report begins.
CHANGES: dict[str, tuple[Change, str]] = {
    "file that is not as RECORD says": (
        _with_record("__init__.py", "sha256=AAAA"), f"{RECORD}__init__.py"
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
    "file of the licence outside the wheel": (
        _with_metadata("License-File: LICENSE", "License-File: /etc/passwd"),
        "problem: licence: the wheel has no /etc/passwd",
    ),
    "entry point that is no module": (
        _with_entry_points("first = acme_first.a-b"),
        "problem: entry point: the entry point 'first' in the group 'custom_pypto.plugins' names",
    ),
    "module that is missing": (
        _with_entry_points("first = acme_first.nope"),
        "problem: entry point: its entry point names 'acme_first.nope', and the wheel has no such",
    ),
    "two entry points": (_with_entry_points(TWO), ENTRY_POINTS),
    # One of what core/tests/test_discovery.py has.
    "manifest of another plugin": (
        _forged(name="second"),
        f"{REFUSED_BY_CORE} its entry point calls it 'first', its manifest 'second'",
    ),
    "op without a kernel": (
        _forged(kernels={"first": []}), "problem: first: first has no kernel for any device"
    ),
    "kernels that nobody saw": (
        _forged(kernels=None), "note: kernels: the build did not import the plugin"
    ),
    "contract that cannot be read": (
        _with_rule, "problem: first: its contract cannot be read: ContractError: rules"
    ),
    "one platform without a library": (
        _for(NEWER_GLIBC),
        "problem: machine: the wheel is for one platform, and no library in it can be read",
    ),
}  # fmt: skip
# The same of a wheel with a library.
LIBRARY_CHANGES: dict[str, tuple[Change, str]] = {
    "tag of any platform": (_for("any"), OTHER_MACHINE.format("any")),
    "library that is missing": (
        lambda wheel: (wheel.files.pop(LIBRARY), _for("any")(wheel)),
        f"{REFUSED_BY_CORE} its library {LIBRARY} is missing",
    ),
    "tag of another processor": (
        _for(f"{NEWER_GLIBC}.manylinux_2_41_mips"), OTHER_MACHINE.format("manylinux_2_41_mips")
    ),
    "tag of another system": (_for("win_amd64"), OTHER_MACHINE.format("win_amd64")),
    "tag that promises nothing": (
        _for(f"linux_{MACHINE}"),
        f"note: system: the tag linux_{MACHINE} promises no glibc, and package indexes refuse it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [*CHANGES, *LIBRARY_CHANGES])
def test_what_is_wrong_is_said(check: Check, right: WheelDraft, case: str) -> None:
    change, remark = {**CHANGES, **LIBRARY_CHANGES}[case]
    changed = right if case in LIBRARY_CHANGES else draft(None)
    change(changed)
    [said] = check(changed)
    assert said.startswith(remark)


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


def _using(symbol: str) -> tuple[str, str, str]:
    return (
        f"extern int {symbol}(void*);{EXPORT} int custom_pypto_use(void) {{ return {symbol}(0); }}",
        "",
        f"problem: symbols: the library needs {symbol}, not of PyTorch's stable ABI",
    )


# Source, flags, and the only remark.
COMPILED = {
    "symbol of Python": _using("PyObject_IsTrue"),
    "symbol of ATen": _using("_ZN2at6Tensor3addEv"),
    "folder of its author": (
        "", "-Wl,-rpath,/home/author/lib",
        "problem: folders: the library looks for others in /home/author/lib",
    ),
    "other library": (
        "", "-Wl,--no-as-needed -lgomp",
        "problem: libraries: the library needs libgomp.so.1, which not every Linux has",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "flags", "remark"), COMPILED.values(), ids=COMPILED)
def test_what_a_library_must_not_have(
    right: WheelDraft, check: Check, compiled: Compile, source: str, flags: str, remark: str
) -> None:
    right.set_library(compiled(source, *flags.split()))
    assert check(right) == [remark]


def _holding(name: str, contents: bytes = b"", size: int = 0) -> Callable[[Path], object]:
    """Return what writes a wheel with a file, of which its directory claims a size."""

    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, contents)
            archive.getinfo(name).file_size = size

    return write


ZEROS = bytes(1 << 20)
WHEEL = "a-1-py3-none-any.whl"
# Its name, how it is made, and the reason.
REFUSED: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "other name": ("plugin.zip", Path.touch, "is not named as a wheel"),
    "no archive": (WHEEL, lambda path: path.write_bytes(b"PK" * 100), "File is not a zip file"),
    "missing": (WHEEL, lambda path: None, "cannot be unpacked: [Errno 2] No such file"),
    # It is not waited for.
    "pipe": (WHEEL, os.mkfifo, "is not a regular file"),
    "no metadata": (WHEEL, _holding("a.py"), "must have one folder of metadata"),
    "path above the folder": (WHEEL, _holding("../evil.py"), "lead out of it: '../evil.py'"),
    "absolute path": (WHEEL, _holding("/etc/evil.py"), "lead out of it: '/etc/evil.py'"),
    "path of Windows": (WHEEL, _holding("a\\..\\evil"), "lead out of it: 'a\\\\..\\\\evil'"),
    "path for a terminal": (WHEEL, _holding("a\x1b[2J"), "lead out of it: 'a\\x1b[2J'"),
    "much larger unpacked": (
        WHEEL,
        _holding("zeros", ZEROS, len(ZEROS)),
        "1048576 bytes when unpacked; at most",
    ),
    # No more than the claimed bytes are unpacked, and their checksum is wrong.
    "much larger than it claims": (
        WHEEL,
        _holding("a-1.dist-info/METADATA", ZEROS, 10),
        "unpacked: Bad CRC-32 for file",
    ),
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
    ("limit", "what"), [("MOST_FILES", "files"), ("MOST_BYTES", "bytes when unpacked")]
)
def test_wheel_that_is_too_large_has_status_2(
    tmp_path: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch, limit: str, what: str
) -> None:
    monkeypatch.setattr(unpacked_wheel, limit, 3)
    assert f"{what}; at most 3 are unpacked" in shown(draft(None).write(tmp_path))
