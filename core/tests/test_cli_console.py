"""custom_pypto_cli as a whole: commands and help."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from custom_pypto_cli import commands, main
from custom_pypto_contract.errors import how_to_install
from custom_pypto_discovery.host import CORE

COMMANDS = [*commands.find()]
SCRIPT = Path(sysconfig.get_path("scripts"), "custom-pypto")


def help_text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_info:
        main([*arguments, "--help"])
    assert exit_info.value.code == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_commands_help_says_what_its_exit_status_means(command, capsys):
    assert re.search(r"exit status: 0 \w+, 1 \w+", help_text(capsys, command))


@pytest.fixture
def bring(monkeypatch, tmp_path):
    """Give a way to install a wheel that brings the command `name`, whose module is `source`."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, source: str, wheel: str = "greeting") -> None:
        """Write the wheel's files."""
        module = f"{wheel}_{name}".replace("-", "_")
        (tmp_path / f"{module}.py").write_text(source)
        (dist_info := tmp_path / f"{wheel}-1.0.dist-info").mkdir(exist_ok=True)
        (dist_info / "METADATA").write_text(f"Name: {wheel}\nVersion: 1.0\n")
        (dist_info / "entry_points.txt").write_text(f"[custom_pypto.commands]\n{name} = {module}\n")

    return install


HELLO = """\
SUMMARY = DESCRIPTION = "says hello to 100 % of the world"
EXIT_STATUS = "0 said"
def add_arguments(parser): parser.add_argument("whom")
def run(options): print("hello", options.whom); return 5
"""


def test_an_installed_wheel_brings_a_command(bring, capsys):
    bring("say-hello", HELLO)
    assert main(["say-hello", "world"]) == 5
    assert capsys.readouterr().out == "hello world\n"
    assert "says hello to 100 % of the world" in help_text(capsys, "say-hello")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise ImportError('no such library')", "ImportError: no such library"),
        (HELLO.replace("EXIT_STATUS", "STATUS"), "no attribute 'EXIT_STATUS'"),
    ],
)
def test_a_broken_command_says_why(bring, capsys, source, reason):
    bring("broken", source)
    assert main(["broken", "--any", "thing"]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("end", ["import os; os.abort()", "raise SystemExit('bye')"])
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["list", "--help"]])
def test_a_command_that_ends_the_process_stops_no_other(bring, capsys, end, arguments):
    bring("ending", end)
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == 0
    assert "bye" not in capsys.readouterr().out


def test_a_wheel_takes_no_command_s_name_of_ours(bring, capsys, tmp_path):
    before = commands.find()
    for name in commands.WHEELS:
        bring(name, "raise AssertionError", f"aaa-{name}")
    bring("unreadable", "raise AssertionError", "odd")
    (tmp_path / "odd-1.0.dist-info/entry_points.txt").write_bytes(b"[custom_pypto.commands]\xff")
    assert commands.find() == before
    assert "Lists every installed op plugin" in help_text(capsys, "list")


def test_of_two_wheels_with_one_command_none_is_taken(bring, capsys):
    for wheel in ("one", "two"):
        bring("hello", HELLO, wheel)
    assert main(["hello", "world"]) == 2
    assert "one and two bring it; uninstall all but one" in capsys.readouterr().err


ABSENT = {name: wheel for name, wheel in commands.WHEELS.items() if wheel != CORE}


@pytest.mark.parametrize(("command", "wheel"), ABSENT.items())
def test_a_command_of_an_absent_wheel_names_the_wheel(monkeypatch, capsys, command, wheel):
    monkeypatch.setattr(commands, "entry_points", lambda group: {})
    assert main([command, "--option", "name"]) == 2
    error = f"{wheel} is not installed: {how_to_install(wheel)}"
    assert capsys.readouterr().err == f"custom-pypto {command}: {error}\n"
    assert f"{command} {error}" in " ".join(help_text(capsys).split())


def test_core_s_own_commands_do_not_depend_on_its_metadata(monkeypatch, tmp_path):
    own = {name for name, wheel in commands.WHEELS.items() if wheel == CORE}
    declared = commands.entry_points(commands.GROUP)
    assert own == {name for name, [(wheel, _)] in declared.items() if wheel == CORE}
    (dist_info := tmp_path / "custom_pypto_core-0.1.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for entry_points in (b"\xff[custom_pypto.commands]", b"[custom_pypto.commands]\nlist = old"):
        (dist_info / "entry_points.txt").write_bytes(entry_points)
        found = commands.find()
        assert {name for name in found if found[name].module} == own
        assert all(commands.load(found[name], is_wanted=True).EXIT_STATUS[0] == "0" for name in own)


@pytest.mark.parametrize("limit", ["0", "-1", "inf", "soon"])
def test_a_time_limit_that_is_none_is_refused(limit, capsys):
    with pytest.raises(SystemExit) as exit_info:
        main(["doctor", "--time-limit", limit])
    assert exit_info.value.code == 2
    assert "--time-limit" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(monkeypatch, tmp_path):
    core = tmp_path / "custom_pypto" / "core.py"
    core.parent.mkdir()
    core.write_text("def plugins(): return ()\n")
    (core.parent / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    command = [SCRIPT, "list"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""
    assert done.returncode == 0
