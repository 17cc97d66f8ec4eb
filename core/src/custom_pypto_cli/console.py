"""The entry point: picks the command and turns what a command raises into a message."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from custom_pypto_discovery.host import CORE

from custom_pypto_cli import distribution, terminal
from custom_pypto_cli.commands import CommandError, commands


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, with one sub-parser for each command."""
    root = argparse.ArgumentParser(
        prog="custom-pypto",
        description="Writes, checks, times and records op plugins and their ops.",
        allow_abbrev=False,
    )
    version = distribution.version(CORE) or "(not installed)"
    root.add_argument("--version", action="version", version=f"{CORE} {version}")
    choices = root.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    choices.required = True
    for name, command in commands().items():
        child = choices.add_parser(
            name,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            epilog=f"exit status: {command.EXIT_STATUS}",
            allow_abbrev=False,
        )
        command.add_arguments(child)
        child.set_defaults(run=command.run)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``custom-pypto`` with ``arguments`` (default: those of the process).

    Returns the exit status of the command. Raises SystemExit for ``--help``, ``--version`` and
    wrong usage (status 2), as argparse does.
    """
    terminal.accept_any_text()
    options = parser().parse_args(arguments)
    try:
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
