"""custom-pypto list, and the columns that it and other commands align."""

import io
import json
import os
import sys
from dataclasses import replace

import pytest
from cli_records import ADD, BROKEN, CommandLine
from custom_pypto_cli import isolated_load, main, plugin_list
from custom_pypto_cli.subprocess_call import Outcome
from custom_pypto_cli.terminal import align


def test_shows_an_aligned_table_with_a_reason_below_what_is_not_loaded(cli: CommandLine) -> None:
    assert cli.run("list") == (
        "PLUGIN      VERSION  STATUS    OPS\n"
        "add_custom  0.1.0    loaded    add_custom, add_custom_backward\n"
        "broken      -        rejected  -\n"
        "  its library is missing; reinstall it\n"
    )


def test_json_gives_the_records(cli: CommandLine) -> None:
    add, broken = json.loads(cli.run("list", "--json"))["plugins"]
    assert add == {
        "name": "add_custom",
        "version": "0.1.0",
        "distribution": "custom-pypto-add-custom",
        "status": "loaded",
        "reason": "",
        "ops": [
            {"name": each.name, "schema": each.schema, "dispatch_keys": [*each.dispatch_keys]}
            for each in ADD.ops
        ],
        "folder": "/site/custom_pypto_add_custom",
        "library": "/site/custom_pypto_add_custom/lib/libcustom_pypto_add_custom.so",
        "library_sha256": "5a" * 32,
        "opp": "",
        "load_time": 0.25,
        "cpu_isa": "avx2",
    }
    assert broken["status"] == "rejected"
    assert broken["library"] == ""


def test_without_a_plugin_it_says_how_to_install_one(cli: CommandLine) -> None:
    cli.use()
    assert "`pip install --no-build-isolation ./plugins/<name>`" in cli.run("list")
    assert json.loads(cli.run("list", "--json")) == {"plugins": []}


def test_a_plugin_that_ends_the_process_has_failed(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How it is found: test_cli_isolated_load.py."""
    outcome, _ = isolated_load.load(plugin_list.load_all, time_limit=1.0)
    ended = {"add_custom": Outcome(failure="crashed with SIGSEGV")}
    monkeypatch.setattr(isolated_load, "load", lambda *_, **options: (outcome, ended))
    add, broken = json.loads(cli.run("list", "--json"))["plugins"]
    assert add["status"] == "failed"
    assert add["reason"] == (
        "loading it ended the process: crashed with SIGSEGV\n"
        "set CUSTOM_PYPTO_DISABLE=add_custom, or pip uninstall custom-pypto-add-custom"
    )
    assert broken["status"] == "rejected"


def test_strict_mode_does_not_hide_it(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOM_PYPTO_STRICT", "1")
    seen: list[str | None] = []
    cli.use(plugins=lambda: seen.append(os.environ.get("CUSTOM_PYPTO_STRICT")) or ())
    cli.run("list")
    assert seen == [None]


BOTH_COMMANDS = pytest.mark.parametrize("command", [["list"], ["info", "add_custom"]], ids=str)


@BOTH_COMMANDS
def test_a_core_that_fails_points_to_the_doctor(cli: CommandLine, command: list[str]) -> None:
    def plugins() -> None:
        raise RuntimeError("\x1b[2J")

    cli.use(plugins=plugins)
    errors = cli.run(*command, status=1)
    # What a command refuses cannot act on the terminal.
    assert r"importing custom_pypto.core failed: RuntimeError: \x1b[2J" in errors
    assert "custom-pypto doctor" in errors


UNPRINTABLE = replace(
    BROKEN, version="1\x1b[31m\udcff", reason="first \u202eline\r\nsecond l\xefne\x07"
)


def on_ascii(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Return what the command prints to a terminal that takes ASCII alone, as under LANG=C."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(list(arguments)) == 0
    stream.seek(0)
    return stream.read()


@pytest.mark.parametrize("command", [["list"], ["info", "broken"]], ids=str)
def test_nothing_of_a_plugin_acts_on_the_terminal_and_what_that_lacks_is_escaped(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    cli.use(UNPRINTABLE)
    printed = cli.run(*command)
    assert set("\x1b\r\x07\u202e\udcff").isdisjoint(printed)
    assert "second l\xefne" in printed
    printed = on_ascii(monkeypatch, *command)
    assert r"1\x1b[31m\udcff" in printed
    assert r"second l\xefne\x07" in printed


def test_text_of_any_kind_is_valid_json(cli: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = replace(UNPRINTABLE, reason="\x7f\udcff\u202e")
    cli.use(odd)
    text = on_ascii(monkeypatch, "list", "--json")
    assert "\x7f" not in text
    assert json.loads(text)["plugins"][0]["reason"] == odd.reason


@BOTH_COMMANDS
def test_op_that_no_device_can_run_is_reported(cli: CommandLine, command: list[str]) -> None:
    fake_alone = replace(ADD.ops[0], dispatch_keys=("Meta", "Autograd"))
    cli.use(replace(ADD, ops=(fake_alone, ADD.ops[1])), BROKEN)
    printed = cli.run(*command)
    assert "add_custom has no kernel for any device: its plugin registers none; upgrade" in printed
    assert "add_custom_backward has no kernel" not in printed


def test_columns_are_aligned():
    rows = [("a\nb", "x"), ("long", "y\x1b[2K", "z"), ("a long lone cell",), ("n", "")]
    lines = ["a\\nb  x", "long  y\\x1b[2K  z", "a long lone cell", "n"]
    assert (align(rows), align([])) == (lines, [])
