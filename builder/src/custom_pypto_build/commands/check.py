"""``custom-pypto check``: is a plugin's wheel fit to be published?"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from custom_pypto_cli.commands import CommandError

SUMMARY = "check a plugin's wheel before it is published"
DESCRIPTION = (
    "Unpacks a wheel file into a temporary folder, inspects it as core inspects what is installed, "
    "and says what else is wrong with its tag, files, metadata, contracts and library. Nothing of "
    "the wheel runs. The systems that it runs on are shown if auditwheel is installed."
)
EXIT_STATUS = "0 healthy, 1 problems were found, 2 no wheel that can be read"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and ``--json``."""
    parser.add_argument("wheel", metavar="WHEEL", type=Path, help="the file of the wheel")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Print the report; 1 when it has a problem."""
    from custom_pypto_cli.report import show_report

    from custom_pypto_build.wheel_check.report import make_report
    from custom_pypto_build.wheel_check.unpacked_wheel import WheelError, unpack

    with tempfile.TemporaryDirectory(prefix="custom-pypto-") as folder:
        try:
            report = make_report(unpack(options.wheel, Path(folder).resolve()))
        except WheelError as error:
            raise CommandError(f"{options.wheel} {error}", status=2) from None
    return show_report(report, as_json=options.json)
