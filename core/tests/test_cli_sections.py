"""custom_pypto_cli.doctor: what each section of the doctor finds."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from cli_records import ADD, ADD_KERNEL, MISSING_KERNEL
from custom_pypto_cli import doctor, plugin_list, subprocess_call
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_contract.variables import KNOWN
from custom_pypto_discovery import distributions, lock_file
from custom_pypto_discovery.host import CORE
from custom_pypto_discovery.installed_plugin import InstalledPlugin


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give a folder in which modules are found first, and no variable of CANN's or ours."""
    for name in os.environ:
        if name.startswith(doctor.PREFIX) or name in (*doctor.FOLDERS, AUTOLOAD):
            monkeypatch.delenv(name)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


AUTOLOAD = "TORCH_DEVICE_BACKEND_AUTOLOAD"
NO_LIBRARY = "raise ImportError('libhccl.so: cannot open shared object file: No such file')"
FAILS = f"import os\nif os.environ.get({AUTOLOAD!r}) != '0': {NO_LIBRARY}"
WITHOUT_CANN = {"torch-2.13.0": FAILS, "torch_npu-2.13.0": NO_LIBRARY}
BOTH = {"torch": "2.13.0", "torch_npu": "2.13.0"}
SIMULATOR = {**BOTH, "custom-pypto-simulator": "0.1.0"}
HIDING = {"custom_pypto-1": ""}
SIMULATED = "start each program with `custom-pypto-sim run --`"
NPU = ("torch", "import torch_npu", "problem")
# A section, one of its checks with level and a part of its value, remark and advice; modules that
# have a distribution each, or files; the versions that are installed, if not the real ones.
CASES: list[tuple[str, str, str, str, Mapping[str, str], Mapping[str, str] | None]] = [
    ("machine", "python", "ok", f"({sys.executable})", {}, None),
    ("torch", "torch", "ok", "2.13.0", {"torch-2.13.0": ""}, None),
    ("torch", "import torch", "ok", "ok", {"torch-2.13.0": ""}, None),
    ("torch", "torch", "problem", "--upgrade 'torch>=2.10'", {"torch-2.9.1+cpu": ""}, None),
    ("torch", "torch", "problem", "torch is not installed", {}, {}),
    ("torch", "import torch", "ok", "ok", WITHOUT_CANN, None),
    (*NPU, "libhccl.so: cannot open", WITHOUT_CANN, BOTH),
    (*NPU, f"set {AUTOLOAD}=0", WITHOUT_CANN, BOTH),
    (*NPU, SIMULATED, WITHOUT_CANN, SIMULATOR),
    ("cann", "ASCEND_HOME_PATH", "ok", "not set", {}, {}),
    ("cann", "ASCEND_HOME_PATH", "note", "CANN's environment is not set", {}, BOTH),
    ("core", "custom_pypto", "ok", "/custom_pypto", {}, None),
    ("core", "custom_pypto", "problem", "y, which hides core's own package", HIDING, None),
    ("core", CORE, "problem", "the metadata of custom-pypto-core cannot be read", {}, {CORE: ""}),
    ("core", CORE, "problem", "runs here but is not installed", {}, {}),
    ("variables", "CUSTOM_PYPTO_*", "ok", "none is set", {}, None),
    ("npu_kernels", "search", "ok", "torch_npu is not installed", {}, {}),
]

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


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(("name", "value", "level", "words"), VARIABLES)
def test_a_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, level: str, words: str
) -> None:
    monkeypatch.setenv(name, value)
    found = found_by("cann" if name.startswith("ASCEND") else "variables")[name]
    assert found.level == level
    assert words in "\n".join([found.value, found.remark, found.advice])
    assert "secret" not in repr(found)


@pytest.mark.parametrize(("section", "check", "level", "words", "sources", "versions"), CASES)
def test_section(
    site: Path,
    monkeypatch: pytest.MonkeyPatch,
    section: str,
    check: str,
    level: str,
    words: str,
    sources: Mapping[str, str],
    versions: Mapping[str, str] | None,
) -> None:
    for name, source in sources.items():
        module, _, version = name.partition("-")
        (site / f"{module}.py").write_text(source)
        (folder := site / f"{name}.dist-info").mkdir()
        (folder / "METADATA").write_text(f"Name: {module}\nVersion: {version}\n")
    if sources is HIDING:
        # Another test may have imported the real one.
        monkeypatch.delitem(sys.modules, "custom_pypto", raising=False)
    if versions is not None:
        monkeypatch.setattr(distributions, "version", versions.get)
    found = found_by(section)[check]
    assert found.level == level
    assert words in "\n".join([found.value, found.remark, found.advice])
    assert (SIMULATED in found.advice) == (versions is SIMULATOR)


def found_by(section: str) -> dict[str, Check]:
    return {check.name: check for check in getattr(doctor, section)(DoctorContext())}


def test_a_blocked_plugin_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {**plugin_list.as_json(ADD), "status": "blocked", "reason": "a variable names it"}
    outcome = Outcome(value={"plugins": [record | {"cpu_isa": ""}]})
    monkeypatch.setattr(subprocess_call, "call", lambda function, **options: outcome)
    found = found_by("plugins")["add_custom"]
    note = ("note", "add_custom is blocked", "a variable names it")
    assert (found.level, found.remark, found.advice) == note


def test_variables_that_are_no_problem(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = InstalledPlugin("first", "acme_first", "acme-first", "1.0", site)
    monkeypatch.setattr(doctor.candidates, "find", lambda: (plugin,))
    (path := site / "ops.lock").write_text(lock_file.text_of([]))
    monkeypatch.setenv("CUSTOM_PYPTO_LOCKFILE", str(path))
    monkeypatch.setenv("CUSTOM_PYPTO_FIRST_ORDER", "1")
    assert [*found_by("variables").values()] == [
        Check("CUSTOM_PYPTO_FIRST_ORDER", "set"),
        Check("CUSTOM_PYPTO_LOCKFILE", repr(str(path))),
    ]


UNFIT = "/site/lib/libx_ascendc_dav-3510.so: not used: it was compiled for dav-3510"
# The record of a kernel; level, and parts of value, remark and advice.
KERNELS = {
    "found": (ADD_KERNEL, "ok", "aclnnAdd of CANN (/cann/lib64/libopapi.so)", "", ""),
    "unchecked": (replace(ADD_KERNEL, unchecked="header"), "ok", "; unchecked: header", "", ""),
    "for another NPU": (
        replace(ADD_KERNEL, searched=(UNFIT,)),
        *("note", "aclnnAdd of CANN", UNFIT, "until then the op launches aclnnAdd"),
    ),
    "missing": (
        MISSING_KERNEL,
        *("note", "none on this machine", "CANN: libopapi.so: not there", "install a custom opp"),
    ),
    "other arguments": (
        replace(ADD_KERNEL, mismatch="other arguments"),
        *("problem", "", "other arguments", "the opp package that the plugin was written for"),
    ),
    "in two libraries": (
        replace(MISSING_KERNEL, fault="two libraries"),
        *("problem", "none that can be used", "two libraries", "the op fails on an NPU"),
    ),
}


def search(monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> Check:
    """Have the search for kernels end so; return the one check."""
    monkeypatch.setattr(distributions, "version", lambda name: "2.13.0")
    monkeypatch.setattr(subprocess_call, "call", lambda function, **options: outcome)
    (found,) = doctor.npu_kernels(DoctorContext())
    return found


@pytest.mark.parametrize(
    ("kernel", "level", *("value", "remark", "advice")), KERNELS.values(), ids=KERNELS
)
def test_kernels_for_npus(monkeypatch, kernel, level, value, remark, advice) -> None:
    found = search(monkeypatch, Outcome(value={"add_custom": [plugin_list.as_json(kernel)]}))
    assert found.name == (kernel.op or "add_custom: aclnnOther")
    assert found.level == level
    assert value in found.value
    assert remark in found.remark
    assert advice in found.advice
    assert bool(remark) == bool(found.remark)


def test_a_search_that_fails_is_a_problem(monkeypatch) -> None:
    found = search(monkeypatch, Outcome(failure="crashed with SIGSEGV"))
    assert (found.level, found.value) == ("problem", "failed: crashed with SIGSEGV")
