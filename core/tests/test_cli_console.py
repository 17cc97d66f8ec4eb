"""custom_pypto_cli as a whole: commands and help."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from custom_pypto_cli import commands, main
from custom_pypto_cli.commands import CommandError

COMMANDS = sorted(commands.commands())


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


def test_no_module_of_the_current_folder_is_run(tmp_path):
    (tmp_path / "argparse.py").write_text("raise RuntimeError('not this one')\n")
    command = [sys.executable, "-m", "custom_pypto_cli", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("custom-pypto-core ")


def test_a_new_command_is_one_new_file(monkeypatch, tmp_path, capsys):
    (tmp_path / "say_hello.py").write_text(
        "SUMMARY = 'say hello'\nDESCRIPTION = 'Says hello.'\nEXIT_STATUS = '0 said'\n"
        "def add_arguments(parser): parser.add_argument('whom')\n"
        "def run(options): print('hello', options.whom); return 5\n"
    )
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    assert main(["say-hello", "world"]) == 5
    assert capsys.readouterr().out == "hello world\n"
    del sys.modules["custom_pypto_cli.commands.say_hello"]


def test_no_command_shows_the_usage(capsys):
    with pytest.raises(SystemExit) as exit_info:
        main([])
    assert exit_info.value.code == 2
    assert "usage: custom-pypto" in capsys.readouterr().err


def test_what_a_command_refuses_goes_to_standard_error_with_its_status(monkeypatch, capsys):
    def refuse(options: object) -> int:
        raise CommandError("not today; try tomorrow", status=3)

    monkeypatch.setattr(commands.commands()["list"], "run", refuse)
    assert main(["list"]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "custom-pypto list: not today; try tomorrow\n"


def test_a_reader_that_goes_away_is_no_error(monkeypatch, tmp_path):
    core = tmp_path / "custom_pypto" / "core.py"
    core.parent.mkdir()
    core.write_text("def plugins(): return ()\n")
    (core.parent / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    command = [sys.executable, "-m", "custom_pypto_cli", "list"]
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert done.stderr == b""
    assert done.returncode == 0
