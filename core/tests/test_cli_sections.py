"""custom_pypto_cli.doctor: what each section of the doctor finds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cli_records import ADD_KERNEL, MISSING_KERNEL
from custom_pypto_cli import doctor, plugin_list, subprocess_call
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_contract.variables import KNOWN
from custom_pypto_discovery import distributions, lock_file
from custom_pypto_discovery.installed_plugin import InstalledPlugin


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a folder in which modules are found first, and no variable of CANN's or ours."""
    for name in os.environ:
        if name.startswith(doctor.PREFIX) or name in (*doctor.FOLDERS, AUTOLOAD):
            monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@dataclass(frozen=True)
class Case:
    """A section, what there is, and the check that it gives for this."""

    section: str
    check: str
    level: str
    words: str = ""
    """A part of the value, the remark and the advice, each in a line."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Modules with a distribution each; a name may end in the version."""
    versions: Mapping[str, str] | None = None
    """The versions of all distributions that are installed, if not the real ones."""
    files: Sequence[str] = ()


AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
NO_LIBRARY = "raise ImportError('libhccl.so: cannot open shared object file: No such file')"
FAILS = f"import os\nif os.environ.get({AUTOLOAD!r}) != '0': {NO_LIBRARY}"
WITHOUT_CANN = {"torch-2.13.0": FAILS, "torch_npu-2.13.0": NO_LIBRARY}
BOTH = {"torch": "2.13.0", "torch_npu": "2.13.0"}
SIMULATOR = {**BOTH, "custom-pypto-simulator": "0.1.0"}
SIMULATED = "start each program with `custom-pypto-sim run --`"
CASES = {
    "python": Case("machine", "python", "ok", f"({sys.executable})"),
    "torch": Case("torch", "torch", "ok", "2.13.0", {"torch-2.13.0": ""}),
    "torch is imported": Case("torch", "import torch", "ok", "ok", {"torch-2.13.0": ""}),
    "old torch": Case(
        "torch", "torch", "problem", "--upgrade 'torch>=2.10'", {"torch-2.9.1+cpu": ""}
    ),
    "no torch": Case("torch", "torch", "problem", "torch is not installed", versions={}),
    "torch_npu stops torch": Case("torch", "import torch", "ok", "ok", WITHOUT_CANN),
    "torch_npu fails": Case(
        "torch", "import torch_npu", "problem", "libhccl.so: cannot open", WITHOUT_CANN, BOTH
    ),
    "torch_npu can be switched off": Case(
        "torch", "import torch_npu", "problem", f"set {AUTOLOAD}=0", WITHOUT_CANN, BOTH
    ),
    "simulator for torch_npu": Case(
        "torch", "import torch_npu", "problem", SIMULATED, WITHOUT_CANN, SIMULATOR
    ),
    "variable of CANN": Case("cann", "ASCEND_HOME_PATH", "ok", "not set", versions={}),
    "torch_npu without CANN": Case(
        "cann", "ASCEND_HOME_PATH", "note", "CANN's environment is not set", versions=BOTH
    ),
    "core's package": Case("core", "custom_pypto", "ok", "/custom_pypto"),
    "hidden package": Case(
        "core",
        "custom_pypto",
        "problem",
        "/custom_pypto/__init__.py, which hides core's own package",
        files=["custom_pypto/__init__.py"],
    ),
    "core without metadata": Case(
        "core", "custom-pypto-core", "problem", "runs here but is not installed", versions={}
    ),
    "core's metadata are broken": Case(
        "core",
        "custom-pypto-core",
        "problem",
        "the metadata of custom-pypto-core cannot be read",
        versions={"custom-pypto-core": ""},
    ),
    "no variable": Case("variables", "CUSTOM_PYPTO_*", "ok", "none is set"),
    "no torch_npu": Case("npu_kernels", "search", "ok", "torch_npu is not installed", versions={}),
}


NO_PLUGINS = "custom_pypto does not read CUSTOM_PYPTO_PLUGIN\ndid you mean CUSTOM_PYPTO_PLUGINS?"
NO_TOKEN = f"set\ncustom_pypto does not read CUSTOM_PYPTO_TOKEN\nthere are {', '.join(KNOWN)}"
# A variable and its value; the level and words of its check.
VARIABLES = [
    ("ASCEND_HOME_PATH", ".", "ok", ""),
    ("ASCEND_CUSTOM_OPP_PATH", ".:./none", "problem", "names ./none, which is not there"),
    ("CUSTOM_PYPTO_STRICT", "1", "ok", "'1'"),
    ("CUSTOM_PYPTO_LOCKFILE", "/gone", "problem", "may load: the lock file /gone cannot"),
    ("CUSTOM_PYPTO_PLUGIN", "add_custom", "problem", NO_PLUGINS),
    ("CUSTOM_PYPTO_TOKEN", "a secret", "problem", NO_TOKEN),
    # The simulator checks its own.
    ("CUSTOM_PYPTO_SIM_TOKEN", "a secret", "ok", "set\n\n"),
    ("CUSTOM_PYPTO_DISABLE", "not_installed", "problem", "'not_installed'"),
]


@pytest.mark.parametrize(("name", "value", "level", "words"), VARIABLES)
def test_a_variable(
    site: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, level: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    found = found_by("cann" if name.startswith("ASCEND") else "variables")[name]
    assert found.level.value == level
    assert words in "\n".join([found.value, found.remark, found.advice])
    assert "secret" not in repr(found)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_section(case: Case, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, source in case.sources.items():
        module, _, version = name.partition("-")
        (site / f"{module}.py").write_text(source)
        (folder := site / f"{name}.dist-info").mkdir()
        (folder / "METADATA").write_text(f"Name: {module}\nVersion: {version}\n")
    for file in case.files:
        # Another test may have imported the real one.
        monkeypatch.delitem(sys.modules, Path(file).parts[0], raising=False)
        (site / file).parent.mkdir()
        (site / file).touch()
    if case.versions is not None:
        monkeypatch.setattr(distributions, "version", case.versions.get)
    found = found_by(case.section)[case.check]
    assert found.level.value == case.level
    assert case.words in "\n".join([found.value, found.remark, found.advice])
    if SIMULATOR["custom-pypto-simulator"] not in (case.versions or {}).values():
        assert SIMULATED not in found.advice


def found_by(section: str) -> dict[str, Check]:
    return {check.name: check for check in getattr(doctor, section)(DoctorContext())}


def test_a_lock_file_that_can_be_used_is_no_problem(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path := site / "ops.lock").write_text(lock_file.text_of([]))
    monkeypatch.setenv("CUSTOM_PYPTO_LOCKFILE", str(path))
    assert [*found_by("variables").values()] == [Check("CUSTOM_PYPTO_LOCKFILE", repr(str(path)))]


def test_a_variable_that_is_named_for_a_plugin_is_no_problem(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = InstalledPlugin("first", "acme_first", "acme-first", "1.0", site)
    monkeypatch.setattr(doctor.candidates, "find", lambda: (plugin,))
    monkeypatch.setenv("CUSTOM_PYPTO_FIRST_ORDER", "1")
    assert [*found_by("variables").values()] == [Check("CUSTOM_PYPTO_FIRST_ORDER", "set")]


@pytest.mark.parametrize(
    ("line", "features"),
    [
        ("flags\t\t: fpu avx2 fma sse", ["avx2", "fma"]),
        ("Features\t: fp asimd sve i8mm", ["asimd", "i8mm"]),
        (None, []),
    ],
)
def test_features_of_processors(tmp_path: Path, line: str | None, features: list[str]) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    if line is not None:
        cpuinfo.write_text(f"processor : 0\n{line}\n")
    assert doctor.cpu_features(cpuinfo) == features


OTHER = Path("/other/op_api/lib/libcust_opapi.so")
UNFIT = "/site/lib/libx_ascendc_dav-3510.so: not used: it was compiled for dav-3510"
SHADOWED = f"aclnnAdd is also in {OTHER}; /cann/lib64/libopapi.so is found first and wins"
# The record of a kernel; level, and parts of value, remark and advice.
KERNELS = {
    "found": (ADD_KERNEL, "ok", "aclnnAdd of CANN (/cann/lib64/libopapi.so)", "", ""),
    "unchecked": (
        replace(ADD_KERNEL, unchecked="no header"),
        "ok",
        "; unchecked: no header",
        "",
        "",
    ),
    "for another NPU": (
        replace(ADD_KERNEL, searched=(UNFIT,)),
        *("note", "aclnnAdd of CANN", UNFIT, "until then the op launches aclnnAdd"),
    ),
    "missing": (
        MISSING_KERNEL,
        *("note", "none on this machine", "CANN: libopapi.so: not there", "install a custom opp"),
    ),
    "shadowed": (
        replace(ADD_KERNEL, shadowed=(OTHER,)),
        *("note", "aclnnAdd of CANN", SHADOWED, "uninstall the package that you do not want"),
    ),
    "other arguments": (
        replace(ADD_KERNEL, mismatch="other arguments"),
        *("problem", "", "other arguments", "the opp package that the plugin was written for"),
    ),
    "other arguments, shadowed": (
        replace(ADD_KERNEL, mismatch="other arguments", shadowed=(OTHER,)),
        *("problem", "", f"other arguments\n{SHADOWED}", "or change the order"),
    ),
    "in two libraries": (
        replace(MISSING_KERNEL, fault="two libraries"),
        *("problem", "none that can be used", "two libraries", "the op fails on an NPU"),
    ),
}


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Callable[[Outcome], Check]:
    """Give a way to have the search for kernels end so; it gives the one check."""
    monkeypatch.setattr(distributions, "version", lambda name: "2.13.0")

    def end(outcome: Outcome) -> Check:
        monkeypatch.setattr(subprocess_call, "call", lambda function, **options: outcome)
        (found,) = doctor.npu_kernels(DoctorContext())
        return found

    return end


@pytest.mark.parametrize(
    ("kernel", "level", *("value", "remark", "advice")), KERNELS.values(), ids=KERNELS
)
def test_kernels_for_npus(search, kernel, level, value, remark, advice) -> None:
    found = search(Outcome(value={"add_custom": [plugin_list.as_json(kernel)]}))
    assert found.name == (kernel.op or "add_custom: aclnnOther")
    assert found.level.value == level
    assert value in found.value
    assert remark in found.remark
    assert advice in found.advice
    assert bool(remark) == bool(found.remark)


def test_a_search_that_fails_is_a_problem(search) -> None:
    found = search(Outcome(failure="crashed with SIGSEGV"))
    assert (found.level.value, found.value) == ("problem", "failed: crashed with SIGSEGV")
