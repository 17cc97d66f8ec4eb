"""The entry point: picks the command and turns what a command raises into a message."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from custom_pypto_discovery import distributions
from custom_pypto_discovery.host import CORE

from custom_pypto_cli import commands, terminal
from custom_pypto_cli.commands import CommandError


def parser(names: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the commands `names`, or of all.

    Without `names` it imports no module of another's wheel.
    """
    root = argparse.ArgumentParser(
        prog="custom-pypto",
        description="Shows, checks and locks op plugins; each installed wheel may add commands.",
        allow_abbrev=False,
    )
    version = distributions.version(CORE) or "(unknown)"
    root.add_argument("--version", action="version", version=f"{CORE} {version}")
    choices = root.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    choices.required = True
    found = commands.find()
    for name in sorted(found.keys() & set(names)) or found:
        command = commands.load(found[name], is_wanted=name in names)
        of_command = choices.add_parser(
            name,
            help=command.SUMMARY.replace("%", "%%"),
            description=command.DESCRIPTION,
            epilog=f"exit status: {command.EXIT_STATUS}",
            allow_abbrev=False,
        )
        command.add_arguments(of_command)
        of_command.set_defaults(run=command.run)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``custom-pypto`` with ``arguments`` (default: the process's arguments).

    Returns the exit status of the command. Raises SystemExit for ``--help``, ``--version`` and
    wrong usage (status 2), as argparse does.
    """
    terminal.accept_any_text()
    given = sys.argv[1:] if arguments is None else arguments
    # The other commands are not imported: one that crashes must not keep this one from running.
    root = parser([each for each in given if not each.startswith("-")][:1])
    options, unknown = root.parse_known_args(given)
    try:
        if unknown and "takes_any" not in options:
            root.error(f"unrecognized arguments: {' '.join(unknown)}")
        status: int = options.run(options)
        sys.stdout.flush()
    except CommandError as error:
        terminal.show_error(f"custom-pypto {options.command}: {error}")
        return error.status
    except BrokenPipeError:
        # The reader (`| head`) has gone. Without a sink the interpreter's own flush complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status
