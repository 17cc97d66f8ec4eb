"""The commands: every module in this folder is one, named as the module is.

A new command is one new file here with the members of `Command`; nothing else changes.
"""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from typing import Protocol, cast


class Command(Protocol):
    """The interface of a module of this folder."""

    SUMMARY: str
    """One line for ``custom-pypto --help``, without a full stop."""
    DESCRIPTION: str
    """One or two sentences for ``custom-pypto <command> --help``."""
    EXIT_STATUS: str
    """The meaning of each exit status, such as "0 healthy, 1 problems"."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's own arguments."""

    def run(self, options: argparse.Namespace) -> int:
        """Do it, print by `terminal` and return the exit status; may raise `CommandError`."""


class CommandError(Exception):
    """Ends a command with a message on standard error and an exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        """Take the message, which says what to do, and the exit status."""
        super().__init__(message)
        self.status = status


def commands() -> dict[str, Command]:
    """Return the commands by name, sorted. A module's ``_`` is ``-`` in the command's name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {
        name.replace("_", "-"): cast(Command, import_module(f"{__name__}.{name}")) for name in names
    }
