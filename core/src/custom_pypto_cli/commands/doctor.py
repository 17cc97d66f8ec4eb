"""``custom-pypto doctor``: what is wrong with this installation, and what to do."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Any

from custom_pypto_discovery import discovery, environment
from custom_pypto_discovery.host import CORE, HOW_TO_INSTALL_OPS
from custom_pypto_discovery.installed_plugin import uninstall
from custom_pypto_discovery.printable import shorten

from custom_pypto_cli import doctor, subprocess_call
from custom_pypto_cli.commands import add_time_limit, entry_points
from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check, Report, show_report

SUMMARY = "check this installation and say what to do about each problem"
DESCRIPTION = (
    "Checks Python, torch, CANN, the environment and every op plugin; custom-pypto-build adds the "
    "build tools. Works when torch cannot be imported, or crashes: what runs foreign code runs in "
    "another process."
)
EXIT_STATUS = "0 healthy, 1 problems were found"

SECTIONS_OF_WHEELS = "custom_pypto.doctor"
"""The group of entry points of other wheels' sections: a title, and a module with `checks`."""

# Core's sections: the title of each, and its checks.
_SECTIONS: dict[str, Callable[[DoctorContext], Iterator[Check]]] = {
    "machine": doctor.machine,
    "torch": doctor.torch,
    "cann": doctor.cann,
    "core": doctor.core,
    "variables": doctor.variables,
    "plugins": doctor.plugins,
    "kernels for NPUs": doctor.npu_kernels,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json`` and ``--time-limit``."""
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_time_limit(parser)


def run(options: argparse.Namespace) -> int:
    """Print the report; 1 when it has a problem."""
    report = examine(options.time_limit)
    healthy = "Healthy: no problem was found."
    if not discovery.discover(environment.read()):
        healthy = f"No problem was found, but no op is installed: {HOW_TO_INSTALL_OPS}."
    return show_report(report, as_json=options.json, healthy=healthy)


def examine(time_limit: float) -> Report:
    """Look at everything; each process that this takes may take `time_limit` seconds."""
    context = DoctorContext(time_limit)
    report = {title: list(_section(title, checks, context)) for title, checks in _SECTIONS.items()}
    for name, bringers in entry_points(SECTIONS_OF_WHEELS).items():
        for wheel, module in bringers:
            report.setdefault(name.replace("_", " "), []).extend(_added(wheel, module, time_limit))
    return report


def look(module: str, time_limit: float) -> list[dict[str, str]]:
    """Return the checks of a section, in a process of its own."""
    return [asdict(check) for check in import_module(module).checks(DoctorContext(time_limit))]


def _added(wheel: str, module: str, time_limit: float) -> Iterator[Check]:
    """Yield the checks of a section that another wheel brings."""
    outcome = subprocess_call.call(look, module, time_limit, time_limit=time_limit)
    if outcome.ok:
        found: Any = outcome.value
        yield from (Check(**check) for check in found)
    else:
        yield Check(wheel, "could not be looked at").with_problem(
            f"{module}: {outcome.failure}", f"{uninstall(wheel)}, or reinstall it"
        )


def _section(
    title: str, checks: Callable[[DoctorContext], Iterator[Check]], context: DoctorContext
) -> Iterator[Check]:
    try:
        yield from checks(context)
    except Exception as error:
        # The doctor must go on: an unexpected error is a finding.
        reason = shorten(f"{type(error).__name__}: {error}")
        yield Check(title, f"could not be looked at: {reason}").with_problem(
            f"looking at this failed with {reason}",
            f"reinstall {CORE}; if it happens again, report it with this output",
        )
