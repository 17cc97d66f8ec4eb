"""``custom-pypto bench``: how fast ops are, against their reference and the machine."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from custom_pypto_cli import plugin_list, subprocess_call
from custom_pypto_cli.commands import (
    CommandError,
    add_time_limit,
    load_or_explain,
    positive_seconds,
)
from custom_pypto_cli.terminal import show

from custom_pypto_testing.commands import expect_loaded
from custom_pypto_testing.timing.measured import (
    Measured,
    of_peak,
    spread,
    table_heading,
    table_line,
    time_of,
)

SUMMARY = "time ops against their reference and the machine's peak"
DESCRIPTION = (
    "Times the samples of an op, or of each op of a plugin, on the CPU: against its reference, "
    "torch.compile of that, and the peak of the machine by its flops and bytes. Each "
    "sample runs in a process of its own, and its line is printed when it is done."
)
EXIT_STATUS = (
    "0 timed, 1 a sample failed, or custom_pypto.core cannot be imported, 2 no such op or plugin"
)

_COLUMNS = {
    "ours": time_of("ours"),
    "spread": spread,
    "reference": time_of("reference"),
    "compiled": time_of("compiled"),
    "of peak": of_peak,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the name, the samples, the time, and ``--json``."""
    parser.add_argument("name", metavar="NAME", help="an op, a plugin or a distribution")
    parser.add_argument(
        "--sample", default="", metavar="TEXT", help="samples whose names contain TEXT"
    )
    parser.add_argument(
        "--seconds",
        type=positive_seconds,
        default=1.0,
        metavar="SECONDS",
        help="how long each sample is timed (default: %(default)g)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object for each sample")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Time the samples one after the other; 1 if one fails."""
    limit = options.time_limit
    found = load_or_explain(find, options.name, time_limit=limit)
    expect_loaded(found)
    chosen = [each for each in found["samples"] if options.sample in each[2]]
    if not chosen:
        known = ", ".join(dict.fromkeys(name for _, _, name in found["samples"])) or "none"
        raise CommandError(f"no sample's name contains {options.sample!r}; there are: {known}")
    if not options.json:
        show(table_heading(_COLUMNS, "call"))
    failed = False
    slow: set[str] = set()
    for plugin, op, sample in chosen:
        given = (plugin, op, sample, options.seconds)
        outcome = subprocess_call.call(measure, *given, op not in slow, time_limit=limit)
        if outcome.timed_out and op not in slow:
            # The reference may take long to compile, as one with a loop over rows does.
            slow.add(op)
            outcome = subprocess_call.call(measure, *given, False, time_limit=limit)
        measured: Any = outcome.value
        if outcome.ok:
            line = table_line(_COLUMNS, Measured(**measured))
        else:
            failed = True
            measured = {"op": op, "sample": sample, "problem": outcome.failure}
            line = f"{op} {sample}: problem: {outcome.failure}"
        if options.json:
            print(json.dumps(measured))
        else:
            show(line)
        # The reader of a pipe or a file has this line now, even if the next sample crashes.
        sys.stdout.flush()
    return int(failed)


def find(name: str) -> dict[str, Any]:
    """Load the plugins, in a child; return the samples of what is called `name`."""
    meant, ops = plugin_list.find_ops(name, plugin_list.load())
    from custom_pypto_testing.timing.sample import sample_names

    samples = [(plugin, op, each) for plugin, op in ops for each in sample_names(op)]
    return {**meant, "samples": samples}


def measure(plugin: str, op: str, sample: str, seconds: float, compiles: bool) -> dict[str, Any]:
    """Load the plugins, in a child; time one sample."""
    plugin_list.load()
    from custom_pypto_testing.timing.sample import measure_call

    return asdict(measure_call(plugin, op, sample, seconds, compiles=compiles))
