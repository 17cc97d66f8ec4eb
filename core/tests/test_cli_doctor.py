"""custom-pypto doctor, as a whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from custom_pypto_cli import main
from custom_pypto_cli.commands import doctor
from custom_pypto_cli.probes import machine
from custom_pypto_cli.probes.probe import Probe
from plugin_factory import CORE_PACKAGES, link

PACKAGES = (*CORE_PACKAGES, "custom_pypto_build", "custom_pypto_cli")


@pytest.fixture
def sections(monkeypatch):
    """Give a way to have the doctor look at nothing but the given probes."""

    def replace(**probes: list[Probe]) -> None:
        monkeypatch.setattr(doctor, "_SECTIONS", dict.fromkeys(probes, "custom_pypto_cli.probes"))
        monkeypatch.setattr(doctor.entry_points, "find", lambda group: {})
        monkeypatch.setattr(doctor, "_section", lambda title, *_: probes[title])

    return replace


def test_a_healthy_installation_has_status_0(sections, capsys):
    sections(machine=[Probe("python", "3.11"), Probe("processors", "2")])
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == (
        "machine\n  python      3.11\n  processors  2\n\nHealthy: no problem was found.\n"
    )


def test_a_problem_has_status_1_and_ends_in_what_to_do(sections, capsys):
    sections(machine=[Probe("python", "3.8").with_problem("Python is old", "get a newer one")])
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out == (
        "machine\n"
        "  python  3.8\n"
        "    problem: Python is old; get a newer one\n"
        "\n"
        "1 problem found: see the lines with 'problem:'.\n"
    )


def test_a_note_is_no_problem(sections, capsys):
    sections(tools=[Probe("ninja", "not found").with_note("no ninja", "pip install ninja")])
    assert main(["doctor"]) == 0
    assert "    note: no ninja; pip install ninja\n" in capsys.readouterr().out


def test_much_to_do_is_said_once_though_several_need_it(sections, capsys):
    remedy = "install it " + "and everything that it needs " * 3
    missing = [Probe(name, "none").with_note(f"{name} is missing", remedy) for name in "ab"]
    other = Probe("c", "none").with_note("c is missing", "look for it")
    sections(kernels=missing, tools=[missing[0], other, other])
    assert main(["doctor"]) == 0
    notes = [line.strip() for line in capsys.readouterr().out.splitlines() if "note:" in line]
    assert notes == [
        f"note: a is missing; {remedy.strip()}",
        "note: b is missing; see above what to do",
        "note: a is missing; see above what to do",
        "note: c is missing; look for it",
        "note: c is missing; look for it",
    ]


def test_what_to_do_stands_on_its_own_line_after_the_output_of_a_program(sections, capsys):
    sections(
        torch=[Probe("torch", "-").with_problem("it crashed\nits output:\nboom", "reinstall it")]
    )
    assert main(["doctor"]) == 1
    assert (
        "    problem: it crashed\n    its output:\n    boom\n    reinstall it\n"
        in capsys.readouterr().out
    )


def test_json_has_every_probe_as_a_value(sections, capsys):
    sections(machine=[Probe("python", "3.8").with_problem("Python is old", "get a newer one")])
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "healthy": False,
        "sections": {
            "machine": [
                {
                    "name": "python",
                    "value": "3.8",
                    "level": "problem",
                    "remark": "Python is old",
                    "advice": "get a newer one",
                }
            ]
        },
    }


def test_a_section_that_raises_is_a_finding_and_the_others_go_on(monkeypatch, capsys):
    def raising(time_limit: float) -> None:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(machine, "probes", raising)
    wanted = {title: doctor._SECTIONS[title] for title in ("machine", "cann")}
    monkeypatch.setattr(doctor, "_SECTIONS", wanted)
    assert main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)["sections"]
    assert report["machine"][0]["value"] == "could not be looked at: ZeroDivisionError: surprise"
    assert len(report["cann"]) == 3


GOOD = """
from custom_pypto_cli.probes.probe import Probe
def probes(trial): yield Probe("tuner", "2 devices").with_note("one is old", "get a newer one")
"""


@pytest.mark.parametrize(
    ("source", "value", "remark"),
    [
        (GOOD, "2 devices", "one is old"),
        ("import os; os._exit(7)", "could not be looked at", "acme_tuning: ended with status 7"),
    ],
)
def test_a_wheel_may_add_a_section_that_runs_in_another_process(
    monkeypatch, tmp_path, capsys, source, value, remark
):
    monkeypatch.setattr(doctor, "_SECTIONS", {"machine": doctor._SECTIONS["machine"]})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "acme_tuning.py").write_text(source)
    (dist_info := tmp_path / "acme_tuning-1.0.dist-info").mkdir()
    (dist_info / "METADATA").write_text("Name: acme-tuning\nVersion: 1.0\n")
    (dist_info / "entry_points.txt").write_text("[custom_pypto.doctor]\nfast_paths = acme_tuning\n")
    assert main(["doctor", "--json"]) in {0, 1}
    sections = json.loads(capsys.readouterr().out)["sections"]
    assert next(iter(sections)) == "machine"
    [probe] = sections["fast paths"]
    assert probe["value"] == value
    assert probe["remark"].startswith(remark)


@pytest.mark.parametrize("limit", ["0", "-1", "inf", "soon"])
def test_a_time_limit_that_is_none_is_refused(limit, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["doctor", "--time-limit", limit])
    assert exit_info.value.code == 2
    assert "--time-limit" in capsys.readouterr().err


def report_of(site: Path, *arguments: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the report of a doctor that sees the standard library and the folder `site` alone."""
    code = f"import sys; sys.path.insert(0, {str(site)!r}); import custom_pypto_cli as cli\n"
    command = [sys.executable, "-I", "-S", "-c", f"{code}sys.exit(cli.main(sys.argv[1:]))"]
    done = subprocess.run(
        [*command, "doctor", "--json", *arguments], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 1
    sections = json.loads(done.stdout)["sections"]
    return {title: {probe["name"]: probe for probe in probes} for title, probes in sections.items()}


@pytest.fixture
def site(tmp_path) -> Path:
    """Give a folder with links to core's packages and nothing else."""
    folder = tmp_path / "site"
    folder.mkdir()
    return link(folder, *PACKAGES)


def test_works_without_any_package_but_core(site):
    report = report_of(site)
    assert report["torch"]["torch"]["remark"] == "torch is not installed"
    assert report["machine"]["python"]["level"] == "ok"
    failed = report["plugins"]["import custom_pypto.core"]
    assert "no single plugin explains it: ImportError: custom_pypto.core needs" in failed["remark"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ImportError('no libtorch')", "ImportError: no libtorch"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed with SIGSEGV"),
        ("import os; os._exit(0)", "`import torch` failed: ended with status 0 before it was done"),
        ("import signal; signal.pause()", "did not end within 1 s"),
    ],
)
def test_works_where_torch_does_not(site, source, reason):
    (site / "torch.py").write_text(source)
    (site / "pluggy.py").write_text("")
    info = site / "torch-2.13.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n")
    limit = ["--time-limit", "1"] if "pause" in source else []

    report = report_of(site, *limit)

    assert reason in report["torch"]["import torch"]["remark"]
    failed = report["plugins"]["import custom_pypto.core"]
    assert failed["level"] == "problem"
    assert "custom-pypto doctor" not in failed["remark"]


def test_works_where_core_does_not(site):
    (site / "custom_pypto").unlink()
    core = site / "custom_pypto" / "core.py"
    core.parent.mkdir()
    (core.parent / "__init__.py").write_text("")
    core.write_text("raise SyntaxError('a half-written file')\n")
    failed = report_of(site)["plugins"]["import custom_pypto.core"]
    assert "SyntaxError: a half-written file" in failed["remark"]
