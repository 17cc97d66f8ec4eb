"""``custom-pypto doctor``: what is wrong with this installation, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Any

from custom_pypto_discovery.printable import shorten

from custom_pypto_cli import child, entry_points
from custom_pypto_cli.commands import add_time_limit
from custom_pypto_cli.probes.probe import Level, Probe
from custom_pypto_cli.probes.trial import Trial
from custom_pypto_cli.report import Report, show_report

SUMMARY = "check this installation and say what to do about each problem"
DESCRIPTION = (
    "Checks Python, torch, CANN, the environment and every op plugin; custom-pypto-build adds the "
    "build tools. Works when torch cannot be imported, or crashes: what runs foreign code runs in "
    "another process."
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
    report = {title: list(_section(title, module, trial)) for title, module in _SECTIONS.items()}
    for name, bringers in entry_points.find(entry_points.DOCTOR).items():
        for wheel, module in bringers:
            report.setdefault(name.replace("_", " "), []).extend(_added(wheel, module, trial))
    return report


def look(module: str, time_limit: float) -> list[dict[str, Any]]:
    """Return the probes of a section, in the child."""
    probes: Callable[[Trial], Iterator[Probe]] = import_module(module).probes
    return [{**asdict(each), "level": each.level.value} for each in probes(Trial(time_limit))]


def _added(wheel: str, module: str, trial: Trial) -> Iterator[Probe]:
    """Yield the probes of a section that another wheel brings."""
    outcome = child.call(look, module, trial.time_limit, time_limit=trial.time_limit)
    if outcome.ok:
        found: Any = outcome.value
        yield from (Probe(**{**each, "level": Level(each["level"])}) for each in found)
    else:
        yield Probe(wheel, "could not be looked at").with_problem(
            f"{module}: {outcome.failure}", f"pip uninstall {wheel}, or reinstall it"
        )


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
