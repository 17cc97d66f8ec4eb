"""``custom-pypto replay``: makes recorded calls again, as a test."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from custom_pypto_cli import plugin_list, subprocess_call
from custom_pypto_cli.commands import CommandError, add_time_limit, load_or_explain
from custom_pypto_cli.terminal import show
from custom_pypto_contract import small_file
from custom_pypto_discovery.environment import CALLS
from custom_pypto_discovery.printable import shorten

SUMMARY = "make recorded calls again, and check their results"
DESCRIPTION = (
    "Makes the calls that CUSTOM_PYPTO_RECORD has kept again, on the CPU: twice, for equal bits, "
    "and by the op's reference, if it has one. A call that crashes does not stop the others."
)
EXIT_STATUS = (
    "0 right, 1 a call was wrong, or custom_pypto.core cannot be imported, 2 no file of calls"
)

# A child starts in seconds; each reports all that it has found after each call.
_CALLS_OF_A_CHILD = 50
_MOST_BYTES = 1 << 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and ``--json``."""
    parser.add_argument(
        "path", metavar="PATH", type=Path, help="the file or folder of CUSTOM_PYPTO_RECORD"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each call")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Make the calls and print a line for each; 1 if one is wrong."""
    lines = _read(options.path)
    total = len(lines)
    load_or_explain(plugin_list.load_all, time_limit=options.time_limit)
    wrong = left_out = done = 0
    while done < total:
        outcome = subprocess_call.call(
            replay, str(options.path), done, time_limit=options.time_limit
        )
        made: Any = (outcome.value if outcome.ok else outcome.progress) or []
        if not outcome.ok:
            # A child may crash after its last call. That call is then at fault.
            made = made[: min(_CALLS_OF_A_CHILD, total - done) - 1]
            number = done + len(made)
            problem = {"problem": outcome.failure, "left_out": ""}
            made = [*made, {"call": number, "op": _op(lines[number]), **problem}]
        for each in made:
            wrong += bool(each["problem"])
            left_out += bool(each["left_out"])
            if options.json:
                print(json.dumps(each))
            else:
                show(_line(each))
        sys.stdout.flush()
        done += len(made)
    if not options.json:
        calls = total - left_out
        show(f"{calls - wrong} of {calls} calls are right")
    return 1 if wrong else 0


def replay(path: str, first: int) -> list[dict[str, Any]]:
    """Load the plugins, in a child; make some calls from number `first` on."""
    plugin_list.load()
    from custom_pypto_testing.replayed_call import replay_calls

    file = _file(Path(path))
    lines = _read(file)[first : first + _CALLS_OF_A_CHILD]
    made: list[dict[str, Any]] = []
    for found in replay_calls(lines, file.parent, first):
        texts = {key: shorten(found[key]) for key in ("problem", "left_out")}
        made.append({**found, **texts})
        subprocess_call.report_progress(made)
    return made


def _file(path: Path) -> Path:
    return path / CALLS if path.is_dir() else path


def _read(path: Path) -> list[str]:
    try:
        lines = small_file.read(_file(path), _MOST_BYTES).splitlines()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error}", status=2) from None
    if not lines:
        raise CommandError(f"no call was kept in {path}", status=2)
    return lines


def _op(line: str) -> str:
    try:
        return str(json.loads(line)["op"])
    except (ValueError, LookupError, TypeError):
        return "?"


def _line(made: dict[str, Any]) -> str:
    if made["left_out"]:
        return f"{made['call']}: left out: {made['left_out']}"
    call = f"{made['call']}: {made['op']}({made.get('arguments', '..')}): "
    if made["problem"]:
        return f"{call}problem: {made['problem']}"
    return f"{call}{'right' if made['has_reference'] else 'the same twice, no reference'}"
