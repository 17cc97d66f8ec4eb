"""``custom-pypto verify``: do the ops work on this machine's NPU?"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

from custom_pypto_cli import isolated_load, subprocess_call
from custom_pypto_cli.commands import CommandError, load_or_explain, positive_seconds
from custom_pypto_cli.commands.doctor import examine
from custom_pypto_cli.terminal import show
from custom_pypto_discovery import distributions

from custom_pypto_testing.verification import isolated_checks
from custom_pypto_testing.verification.processes import RUNS, Verification
from custom_pypto_testing.verification.report import Result, Verdict, WrittenReport

SUMMARY = "check the ops on this machine's NPU, and write a report to send"
DESCRIPTION = (
    "Runs checks of the conformance suite on an NPU, or on the CPU, by rising risk: a launch, "
    "results against the CPU, streams, graphs; also with what makes launches faster. Each op "
    "runs in processes of its own. Writes one report, also when a check crashes or hangs."
)
EXIT_STATUS = "0 passed, 1 failed or not run, 2 no such device, op or file"

_FIELDS = ("name", "version", "distribution", "status", "library_sha256")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the names, the device, the report, and how much is done."""
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="an op, a plugin or a distribution (default: all)"
    )
    parser.add_argument(
        "--device", choices=[*RUNS], default="npu", help="where the ops run (default: %(default)s)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="the report, a new file (default: custom-pypto-verify-<time>.md)",
    )
    parser.add_argument(
        "--calls",
        type=_count,
        default=8,
        metavar="N",
        help="the most calls that a check makes of an op (default: %(default)s)",
    )
    parser.add_argument(
        "--time-limit",
        type=positive_seconds,
        default=600.0,
        metavar="SECONDS",
        help="how long each process, which runs several checks of an op, may take (default: "
        "%(default)g)",
    )


def run(options: argparse.Namespace) -> int:
    """Run the checks, print a line for each and write the report; 1 unless all passed."""
    began = datetime.now(timezone.utc)
    path = options.output or Path(f"custom-pypto-verify-{began:%Y%m%d-%H%M%S}.md")
    if path.exists():
        raise CommandError(f"--output: {path} exists; name a new file, or remove it", status=2)
    limit = options.time_limit
    npus = _describe_npus(limit) if options.device == "npu" else {}
    found = load_or_explain(isolated_checks.find, options.names, time_limit=limit)
    if not found["plugins"]:
        reason = found["unknown"] or "no op plugin is installed, so there is nothing to check"
        raise CommandError(reason, status=2)
    report = WrittenReport(
        path,
        options.device,
        began.isoformat(timespec="seconds"),
        npus,
        examine(limit),
        [{name: each[name] for name in _FIELDS} for each in found["plugins"]],
    )
    _write(report)
    start = time.monotonic()
    for result in _results(found, options):
        report.results.append(result)
        show(": ".join(filter(None, result.cells)))
        sys.stdout.flush()
        # Write now, in case that the next check ends the process.
        _write(report)
    report.seconds = time.monotonic() - start
    _write(report)
    show(f"{report.counts}; the report is {path}")
    return 0 if report.has_passed else 1


def _results(found: dict[str, Any], options: argparse.Namespace) -> Iterator[Result]:
    # Of plugins with one name, the loaded one is first.
    plugins = {each["name"]: each for each in reversed(found["plugins"])}
    ops = []
    for name, of_plugin in found["ops"].items():
        plugin = plugins[name]
        if plugin["status"] == "loaded":
            ops += of_plugin
        elif plugin["status"] != "blocked" or options.names:
            reason = f"{plugin['status']}: {plugin['reason']}"
            yield Result(f"plugin {name}", "", "load", Verdict.FAILED, reason)
    # Some end the process that loads them.
    failed = [name for name, plugin in plugins.items() if plugin["status"] == "failed"]
    environment = isolated_load.without(failed)
    verification = Verification(options.device, options.calls, options.time_limit, environment)
    yield from verification.results(ops)


def _describe_npus(time_limit: float) -> dict[str, str]:
    """Return facts about the NPUs."""
    outcome = subprocess_call.call(isolated_checks.describe_npus, time_limit=time_limit)
    if outcome.ok and outcome.value:
        return cast("dict[str, str]", outcome.value)
    if distributions.version("torch_npu") is None:
        reason = "torch_npu is not installed"
    elif outcome.ok:
        reason = "torch_npu finds none"
    else:
        reason = f"torch_npu cannot be imported ({outcome.brief})"
    raise CommandError(
        f"there is no NPU here: {reason}; on a machine with an NPU, install torch_npu and run"
        " `source <CANN folder>/set_env.sh`; elsewhere, start the command under the simulator with"
        " `custom-pypto-sim run --`, or give it `--device cpu`",
        status=2,
    )


def _write(report: WrittenReport) -> None:
    try:
        report.write()
    except OSError as error:
        raise CommandError(
            f"--output: {report.path} cannot be written: {error}; name a file in another folder",
            status=2,
        ) from None


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
    return value
