"""The commands: every module in this folder, and those that other distributions bring.

A command is a module with the members of `Command`. Its distribution names it in the group
``custom_pypto.commands`` of its entry points.
"""

from __future__ import annotations

import argparse
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from custom_pypto_discovery.printable import shorten

from custom_pypto_cli import attempts, entry_points
from custom_pypto_cli.child import TIME_LIMIT

WHEELS = {
    **dict.fromkeys(("check", "import", "new"), "custom-pypto-build"),
    **dict.fromkeys(("bench", "replay", "samples", "verify"), "custom-pypto-testing"),
}


class Command(Protocol):
    """The interface of a command's module."""

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


@dataclass(frozen=True)
class Found:
    """Where a command is."""

    module: str = ""
    wheel: str = ""
    """The distribution that brings it; empty for core's own."""
    problem: str = ""
    """Why there is no module, and what to do."""

    @property
    def is_known(self) -> bool:
        """Whether it comes from this repository, so that its module may be imported unasked."""
        return not self.wheel or self.wheel in WHEELS.values()


class _Stub:
    """Stands for a command that cannot run, or that nobody has asked for: it imports nothing."""

    EXIT_STATUS = "2 always"

    def __init__(self, text: str) -> None:
        self.SUMMARY = self.DESCRIPTION = text

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Let `console` take any."""
        parser.set_defaults(takes_any=True)

    def run(self, options: argparse.Namespace) -> int:
        """Say why it cannot."""
        raise CommandError(self.SUMMARY, status=2)


def find() -> dict[str, Found]:
    """Return the commands by name, sorted.

    A name of `WHEELS` is that wheel's alone. Of other wheels with one name none is taken.
    """
    found = {
        name: Found(wheel=wheel, problem=f"not installed: pip install {wheel}")
        for name, wheel in WHEELS.items()
    }
    for name, bringers in entry_points.find(entry_points.COMMANDS).items():
        right = [each for each in bringers if WHEELS.get(name) in (None, each[0])]
        if len(right) == 1:
            [(wheel, module)] = right
            found[name] = Found(module, wheel)
        elif right:
            wheels = " and ".join(wheel for wheel, _ in right)
            found[name] = Found(wheel=wheels, problem=f"{wheels} bring it; uninstall all but one")
    for own in pkgutil.iter_modules(__path__):
        found[own.name] = Found(f"{__name__}.{own.name}")
    return dict(sorted(found.items()))


def load(found: Found) -> Command:
    """Return a command, if need be one that only says why it cannot run."""
    if not found.module:
        return _Stub(found.problem)
    try:
        command: Command = import_module(found.module)
        command.add_arguments(argparse.ArgumentParser())
        _ = (command.SUMMARY, command.DESCRIPTION, command.EXIT_STATUS, command.run)
    except (Exception, SystemExit) as error:
        reason = shorten(f"{type(error).__name__}: {error}")
        return _Stub(f"the module {found.module} failed: {reason}")
    return command


def stub(found: Found) -> Command:
    """Return what the help shows of a command without its module."""
    return _Stub(found.problem or f"of the wheel {found.wheel}; see its own --help")


def positive_seconds(text: str) -> float:
    """Return the seconds in an argument."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be more than 0 seconds, got {text}")
    return value
