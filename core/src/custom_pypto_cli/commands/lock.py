"""``custom-pypto lock``: writes down which plugins may load, and what they are."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from custom_pypto_contract.replace_file import replace_file
from custom_pypto_discovery import discovery, environment, lock_file
from custom_pypto_discovery.host import this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin, Status

from custom_pypto_cli.commands import CommandError
from custom_pypto_cli.terminal import align, show

SUMMARY = "write a lock file, so that nothing but today's plugins loads"
DESCRIPTION = (
    "Writes name, version and hashes of each plugin that core would load now into FILE. Where "
    "CUSTOM_PYPTO_LOCKFILE names that file, core rejects every other plugin. Runs no plugin."
)
EXIT_STATUS = "0 written, 1 no plugin would load, or the file cannot be used"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file."""
    parser.add_argument("file", metavar="FILE", type=Path, help="the lock file to write")


def run(options: argparse.Namespace) -> int:
    """Write the file and show what is in it, and what is not."""
    # The old lock must not keep the new one from having more.
    settings = replace(environment.read(), lockfile=None)
    found = discovery.discover(settings)
    accepted = [each for each in found if each.status is Status.ACCEPTED]
    others = [each for each in found if each.status is not Status.ACCEPTED]
    if not accepted:
        raise CommandError(
            "core would load no plugin now, so nothing was written; `custom-pypto list` says why"
        )
    try:
        locked = [lock_file.describe(each) for each in accepted]
        replace_file(options.file, lock_file.text_of(locked))
    except OSError as error:
        raise CommandError(f"{options.file} was not written: {error}") from None
    warnings = settings.warnings(each.name for each in found)
    show("\n".join([*_lines(locked, others), *(f"warning: {each}" for each in warnings)]))
    problem = lock_file.read(str(options.file), this_host().trusted_owners).problem
    if problem:
        raise CommandError(f"with the file that was written, {problem}")
    return 0


def _lines(
    locked: Iterable[lock_file.LockedPlugin], others: Iterable[InstalledPlugin]
) -> list[str]:
    rows = [(each["name"], each["version"], each["distribution"]) for each in locked]
    heading, *lines = align([("LOCKED", "VERSION", "DISTRIBUTION"), *rows])
    remarks = [
        f"not locked: {each.name}, which {each.status.verb}: {each.reason}" for each in others
    ]
    return [heading, *lines, *remarks]
