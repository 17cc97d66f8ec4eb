"""``custom-pypto doctor``: what is wrong with this installation, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from importlib import import_module

from custom_pypto_discovery.printable import shorten

from custom_pypto_cli import entry_points
from custom_pypto_cli.commands import add_time_limit
from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial
from custom_pypto_cli.report import Report, show_report

SUMMARY = "check this installation and say what to do about each problem"
DESCRIPTION = (
    "Checks Python, torch, CANN, the build tools, the environment and every op plugin. Works when "
    "torch cannot be imported, or crashes: what runs foreign code runs in another process."
)
EXIT_STATUS = "0 healthy, 1 problems were found"

# Core's sections: the title of each, and its module. A module that cannot be imported is a line of
# the report, so each is imported only when its section begins.
_SECTIONS = {
    "machine": "custom_pypto_cli.probes.machine",
    "torch": "custom_pypto_cli.probes.torch",
    "cann": "custom_pypto_cli.probes.cann",
    "core": "custom_pypto_cli.probes.core",
    "variables": "custom_pypto_cli.probes.variables",
    "plugins": "custom_pypto_cli.probes.plugins",
    "kernels for NPUs": "custom_pypto_cli.probes.npu_kernels",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json`` and ``--time-limit``."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Print the report; 1 when it has a problem."""
    return show_report(examine(options.time_limit), as_json=options.json)


def examine(time_limit: float) -> Report:
    """Look at everything; each process that this takes may take `time_limit` seconds."""
    trial = Trial(time_limit)
    added = {
        name.replace("_", " "): module
        for name, module in entry_points.find(entry_points.DOCTOR).items()
    }
    sections = {**added, **_SECTIONS}
    return {title: list(_section(title, module, trial)) for title, module in sections.items()}


def _section(title: str, module: str, trial: Trial) -> Iterator[Probe]:
    try:
        look: Callable[[Trial], Iterator[Probe]] = import_module(module).probes
        yield from look(trial)
    except Exception as error:
        # The doctor must go on: an unexpected error is a finding.
        reason = shorten(f"{type(error).__name__}: {error}")
        yield Probe(title, f"could not be looked at: {reason}").with_problem(
            f"looking at this failed with {reason}",
            "reinstall custom-pypto-core; if it happens again, report it with this output",
        )
