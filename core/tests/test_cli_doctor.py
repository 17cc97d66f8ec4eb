"""custom-pypto doctor, as a whole."""

import json
from pathlib import Path

import pytest
from custom_pypto_cli import main
from custom_pypto_cli.commands import doctor
from custom_pypto_cli.report import Check, show_report
from custom_pypto_discovery.host import HOW_TO_INSTALL_OPS
from plugin_factory import CORE_PACKAGES, link
from programs import run_python

OLD = Check("python", "3.8").with_problem("Python is old", "get a newer one")
HEALTHY = "\nHealthy: no problem was found.\n"
PROBLEM = "\n1 problem found: see the lines with 'problem:'.\n"
# A report, and what is printed.
REPORTS = {
    "healthy": (
        {"machine": [Check("python", "3.11"), Check("processors", "2")]},
        f"machine\n  python      3.11\n  processors  2\n{HEALTHY}",
    ),
    "problem": (
        {"machine": [OLD], "tools": [Check("c", "-").with_note("c is missing", "look for it")]},
        (
            "machine\n  python  3.8\n    problem: Python is old; get a newer one\n\n"
            f"tools\n  c  -\n    note: c is missing; look for it\n{PROBLEM}"
        ),
    ),
    "output of a program": (
        {"torch": [Check("torch", "-").with_problem("it crashed\nits output:\nboom", "reinstall")]},
        (
            "torch\n  torch  -\n    problem: it crashed\n    its output:\n    boom\n    reinstall\n"
            f"{PROBLEM}"
        ),
    ),
}


@pytest.mark.parametrize(("report", "text"), REPORTS.values(), ids=REPORTS)
def test_a_report_says_what_to_do(capsys, report, text):
    assert show_report(report, as_json=False) == ("problem:" in text)
    assert capsys.readouterr().out == text


@pytest.mark.parametrize("installed", [["a plugin"], []])
def test_without_an_op_the_doctor_says_how_to_install_one(monkeypatch, capsys, installed):
    monkeypatch.setattr(doctor, "_SECTIONS", {"machine": doctor._SECTIONS["machine"]})
    monkeypatch.setattr(doctor, "entry_points", lambda group: {})
    monkeypatch.setattr(doctor.discovery, "discover", lambda settings: installed)
    assert main(["doctor"]) == 0
    without = f"\nNo problem was found, but no op is installed: {HOW_TO_INSTALL_OPS}.\n"
    assert capsys.readouterr().out.endswith(HEALTHY if installed else without)


def test_a_section_that_raises_stops_no_other(monkeypatch, capsys):
    def raising(time_limit: float) -> None:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(doctor, "_SECTIONS", {"machine": raising, "cann": doctor._SECTIONS["cann"]})
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)["sections"]
    check = Check(**report["machine"][0])
    assert check.value == "could not be looked at: ZeroDivisionError: surprise"
    assert check.level == "problem"
    assert len(report["cann"]) == 3


GOOD = """
from custom_pypto_cli.report import Check, show_report
def checks(context): yield Check("tuner", "2 devices").with_note("one is old", "get a newer one")
"""


@pytest.mark.parametrize(
    ("source", "value", "remark"),
    [
        (GOOD, "2 devices", "one is old"),
        ("import os; os._exit(7)", "could not be looked at", "acme_tuning: ended with status 7"),
    ],
)
def test_a_wheel_adds_a_section(monkeypatch, tmp_path, capsys, source, value, remark):
    monkeypatch.setattr(doctor, "_SECTIONS", {"machine": doctor._SECTIONS["machine"]})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "acme_tuning.py").write_text(source)
    (dist_info := tmp_path / "acme_tuning-1.0.dist-info").mkdir()
    (dist_info / "METADATA").write_text("Name: acme-tuning\nVersion: 1.0\n")
    (dist_info / "entry_points.txt").write_text("[custom_pypto.doctor]\nfast_paths = acme_tuning\n")
    assert main(["doctor", "--json"]) in {0, 1}
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert next(iter(sections)) == "machine"
    [check] = sections["fast paths"]
    assert check["value"] == value
    assert check["remark"].startswith(remark)


def report_of(site: Path, *arguments: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the report of a doctor that sees the standard library and the folder `site` alone."""
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import custom_pypto_cli as cli\n"
    command = ("-I", "-S", "-c", f"{code}sys.exit(cli.main(sys.argv[1:]))")
    done = run_python(*command, "doctor", "--json", *arguments, status=1)
    assert done.stderr == ""
    sections = json.loads(done.stdout)["sections"]
    return {title: {check["name"]: check for check in checks} for title, checks in sections.items()}


@pytest.fixture
def site(tmp_path) -> Path:
    """Give a folder with links to core's packages and nothing else."""
    (folder := tmp_path / "site").mkdir()
    return link(folder, *CORE_PACKAGES, "custom_pypto_build", "custom_pypto_cli")


def test_works_without_any_package_but_core(site):
    report = report_of(site)
    assert report["torch"]["torch"]["remark"] == "torch is not installed"
    assert report["machine"]["python"]["level"] == "ok"
    failed = report["plugins"]["import custom_pypto.core"]
    assert "no single plugin explains it: ImportError: custom_pypto.core needs" in failed["remark"]
    assert "pip install --no-build-isolation ./plugins/" in report["plugins"]["plugins"]["advice"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ImportError('no libtorch')", "ImportError: no libtorch"),
        ("import signal; signal.pause()", "did not end within 1 s"),
    ],
)
def test_works_where_torch_does_not(site, source, reason):
    (site / "torch.py").write_text(source)
    (site / "pluggy.py").write_text("")
    (info := site / "torch-2.13.0.dist-info").mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    report = report_of(site, *(["--time-limit", "1"] if "pause" in source else []))
    assert reason in report["torch"]["import torch"]["remark"]
    failed = report["plugins"]["import custom_pypto.core"]
    assert failed["level"] == "problem"
    assert "custom-pypto doctor" not in failed["remark"]


def test_works_where_core_does_not(site):
    (site / "custom_pypto").unlink()
    (package := site / "custom_pypto").mkdir()
    (package / "__init__.py").touch()
    (package / "core.py").write_text("raise SyntaxError('a half-written file')\n")
    failed = report_of(site)["plugins"]["import custom_pypto.core"]
    assert "SyntaxError: a half-written file" in failed["remark"]
