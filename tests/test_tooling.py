"""The tools of the repository: versions, distributions, environments one after another."""

from __future__ import annotations

import re
import sys
from itertools import product
from pathlib import Path

import distributions
import pytest
import run_environments
from repository import ROOT
from run_environments import read_outcome

from examples import program


@pytest.mark.parametrize("tool", ["ruff", "clang-format"])
def test_pre_commit_uses_the_version_of_tox(tool: str) -> None:
    pin = re.compile(rf"\b{tool}==([\w.]+)")
    hooks = set(pin.findall((ROOT / ".pre-commit-config.yaml").read_text()))
    tox = set(pin.findall((ROOT / "tox.ini").read_text()))
    assert hooks == tox
    assert len(hooks) == 1


def test_distributions_are_found_by_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("new_op", "other"):
        folder = tmp_path / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "acme-{name}"\n')
    monkeypatch.setattr(distributions, "ROOT", tmp_path)
    assert [*distributions.find(["plugins/*"])] == ["acme-new_op", "acme-other"]


def test_examples_change_no_environment_but_a_virtual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    with pytest.raises(program.ExampleError, match="only runs in a virtual environment"):
        program.build(tmp_path, program.BASE)


TOX = (ROOT / "tox.ini").read_text()
# Benchmarks and examples, whose results are for people; other releases of torch and the newest.
NOT_IN_ALL = re.compile(r".*bench|demo|transformers(-train)?|torches-.*|newest.*|all")


def environments() -> set[str]:
    """The environments that the sections of tox.ini name, without braces."""
    names: set[str] = set()
    for section in re.findall(r"^\[testenv:(.+)\]$", TOX, re.MULTILINE):
        parts = (part.split(",") for part in re.split(r"[{}]", section))
        names |= {"".join(chosen) for chosen in product(*parts)}
    return names


def test_tox_all_runs_every_environment_that_is_no_benchmark() -> None:
    section = TOX.partition("\n[testenv:all]\n")[2].partition("\n\n")[0]
    named = section.partition("run_environments.py")[2]
    wanted = {name for name in environments() if not NOT_IN_ALL.fullmatch(name)}
    assert {*named.replace("\\", "").split()} == wanted


def test_workflows_run_environments_of_tox() -> None:
    run = re.compile(r"\btox -e ([\w,-]+)$|\benvironment: \[(.+)\]$", re.MULTILINE)
    files = (ROOT / ".github" / "workflows").glob("*.yml")
    named = [name for file in files for pair in run.findall(file.read_text()) for name in pair]
    assert {"all", "docs"} <= set(re.findall(r"[\w-]+", ",".join(named))) <= environments()


def test_a_row_shows_what_pytest_counted_and_the_first_reason() -> None:
    counted = "===== 3 passed, 2 warnings in 1.20s =====\n\x1b[32m7 passed in 4.02s (0:00:04)\n"
    assert read_outcome(0, counted) == "3 passed, 2 warnings; 7 passed"
    missing = "tests/aarch64/test_isas.py::test_x - Failed: qemu-aarch64 was not found"
    failed = f"FAILED {missing}\nFAILED tests/other.py - more\n== 2 failed, 5 passed in 3.00s ==\n"
    assert read_outcome(1, failed) == f"2 failed, 5 passed; {missing}"
    assert read_outcome(3, "nothing to read") == "exit status 3"
    assert read_outcome(4, "ERROR: name a file\n") == "name a file"


def test_every_environment_runs_whatever_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # A tox of the test, which Python finds in the current folder.
    (tmp_path / "tox.py").write_text(
        "import sys\nprint('4 passed in 0.01s')\n"
        "raise SystemExit('ERROR: no compiler' if sys.argv[-1] == 'bad' else 0)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert run_environments.main(["bad", "good"]) == 1
    bad, good = capfd.readouterr().out.splitlines()[-2:]
    assert re.fullmatch(r"bad +failed +\d+  4 passed; no compiler", bad)
    assert re.fullmatch(r"good +ok +\d+  4 passed", good)
