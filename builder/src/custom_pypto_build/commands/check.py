"""``custom-pypto check``: is a plugin's wheel fit to be published?"""

from __future__ import annotations

import argparse
from pathlib import Path

from custom_pypto_cli.commands import CommandError

SUMMARY = "check a plugin's wheel before it is published"
DESCRIPTION = (
    "Looks into a wheel file without installing it, and says what is wrong with its tag, files, "
    "metadata, manifest, contracts and library. Nothing of the wheel runs."
)
EXIT_STATUS = "0 healthy, 1 problems were found, 2 no wheel that can be read"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and ``--json``."""
    parser.add_argument("wheel", metavar="WHEEL", type=Path, help="the file of the wheel")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the report; 1 when it has a problem."""
    from custom_pypto_cli.report import show_report

    from custom_pypto_build.wheel_check import contents, library, metadata, plugin
    from custom_pypto_build.wheel_check.plugin_wheel import PluginWheel
    from custom_pypto_build.wheel_check.wheel_file import WheelError

    sections = {"files": contents, "metadata": metadata, "plugin": plugin, "library": library}
    try:
        wheel = PluginWheel(options.wheel)
    except WheelError as error:
        raise CommandError(f"{options.wheel} {error}", status=2) from None
    report = {title: list(module.probes(wheel)) for title, module in sections.items()}
    return show_report(report, as_json=options.json)
