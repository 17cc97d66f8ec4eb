"""The commands: every module in this folder is one, named as the module is.

A new command is one new file here with the members of `Command`; nothing else changes.
"""

from __future__ import annotations

import argparse
import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from custom_pypto_cli import attempts
from custom_pypto_cli.child import TIME_LIMIT


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
        super().__init__(message)
        self.status = status


def add_time_limit(parser: argparse.ArgumentParser) -> None:
    """Declare ``--time-limit``, as every command that runs foreign code has it."""
    parser.add_argument(
        "--time-limit",
        type=positive_seconds,
        default=TIME_LIMIT,
        metavar="SECONDS",
        help="how long each import may take (default: %(default)g)",
    )


def load_or_explain(function: Callable[..., Any], *arguments: object, time_limit: float) -> Any:
    """Return what `function` of `records` returns in a process that loads the plugins.

    A plugin that ended that process is left out, and its record says so.

    Raises:
        CommandError: core cannot be imported.
    """
    outcome, ended = attempts.load(function, *arguments, time_limit=time_limit)
    if not outcome.ok:
        raise CommandError(
            f"importing custom_pypto.core failed: {outcome.failure}\n"
            "Run `custom-pypto doctor`, which works all the same, to see why."
        )
    value: Any = outcome.value
    attempts.mark_ended(value["plugins"] if isinstance(value, dict) else value, ended)
    return value


def expect_loaded(found: Mapping[str, Any]) -> None:
    """Check what a name means: `plugins` are its records, or `unknown` says that there are none.

    Raises:
        CommandError: there are none, or one is not loaded.
    """
    if not found["plugins"]:
        raise CommandError(found["unknown"], status=2)
    for plugin in found["plugins"]:
        if plugin["status"] != "loaded":
            state = f"the plugin {plugin['name']!r} is {plugin['status']}"
            raise CommandError(f"{state}: {plugin['reason']}")


def commands() -> dict[str, Command]:
    """Return the commands by name, sorted. A module's ``_`` is ``-`` in the command's name.

    A keyword of Python is no module's name, so the module of such a command ends in ``_``.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {
        name.removesuffix("_").replace("_", "-"): cast(Command, import_module(f"{__name__}.{name}"))
        for name in names
    }


def positive_seconds(text: str) -> float:
    """Return the seconds in an argument."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be more than 0 seconds, got {text}")
    return value
