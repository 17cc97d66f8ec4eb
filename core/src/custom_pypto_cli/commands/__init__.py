"""The commands that the installed distributions bring, core's own among them.

A command is a module with the members of `Command`. Its distribution names it in the group
``custom_pypto.commands`` of its entry points.
"""

from __future__ import annotations

import argparse
import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from custom_pypto_contract.errors import how_to_install
from custom_pypto_discovery import distributions
from custom_pypto_discovery.host import CORE
from custom_pypto_discovery.printable import shorten

from custom_pypto_cli import isolated_load
from custom_pypto_cli.subprocess_call import TIME_LIMIT

GROUP = "custom_pypto.commands"
BUILD, TESTING = "custom-pypto-build", "custom-pypto-testing"
WHEELS = {
    **dict.fromkeys((each.name for each in pkgutil.iter_modules(__path__)), CORE),
    **dict.fromkeys(("check", "import", "new"), BUILD),
    **dict.fromkeys(("bench", "replay", "samples", "verify"), TESTING),
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
        """Run it, print by `terminal` and return the exit status; may raise `CommandError`."""


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


def positive_seconds(text: str) -> float:
    """Return the seconds in an argument."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be more than 0 seconds, got {text}")
    return value


def load_or_explain(function: Callable[..., Any], *arguments: object, time_limit: float) -> Any:
    """Return what `function`, which loads the plugins, returns in a process of its own.

    Its item `plugins` has the records of plugins; a plugin that ended the process is marked.

    Raises:
        CommandError: core cannot be imported.
    """
    outcome, ended = isolated_load.load(function, *arguments, time_limit=time_limit)
    if not outcome.ok:
        raise CommandError(
            f"importing custom_pypto.core failed: {outcome.failure}\n"
            "Run `custom-pypto doctor`, which works all the same, to see why."
        )
    value: Any = outcome.value
    isolated_load.mark_ended(value["plugins"], ended)
    return value


def entry_points(group: str) -> dict[str, list[tuple[str, str]]]:
    """Return entry points by name: each has its distributions and modules, sorted, each once."""
    found: dict[str, set[tuple[str, str]]] = {}
    for distribution in distributions.installed():
        for name, module in distributions.entry_points(distribution, group):
            found.setdefault(name, set()).add((distributions.name_of(distribution), module))
    return {name: sorted(found[name]) for name in sorted(found)}


class Found(NamedTuple):
    """A command: its wheel, and its module, or why there is none."""

    wheel: str
    module: str = ""
    problem: str = ""


def find() -> dict[str, Found]:
    """Return the commands by name, sorted.

    A command in `WHEELS` comes only from that wheel, and core's own do not depend on core's
    metadata, which may be damaged. If two other wheels bring the same name, neither is used.
    """
    found = {}
    for name, wheel in WHEELS.items():
        problem = f"{wheel} is not installed: {how_to_install(wheel)}"
        own = Found(CORE, f"{__name__}.{name}")
        found[name] = own if wheel == CORE else Found(wheel, problem=problem)
    for name, bringers in entry_points(GROUP).items():
        if WHEELS.get(name) == CORE:
            continue
        right = [each for each in bringers if WHEELS.get(name) in (None, each[0])]
        if len(right) == 1:
            found[name] = Found(*right[0])
        elif right:
            wheels = " and ".join(wheel for wheel, _ in right)
            found[name] = Found(wheels, problem=f"{wheels} bring it; uninstall all but one")
    return dict(sorted(found.items()))


class _Stub:
    """Stands for a command that cannot run, or that nobody has asked for: it imports nothing."""

    EXIT_STATUS = "2 always"

    def __init__(self, text: str) -> None:
        self.SUMMARY = self.DESCRIPTION = text

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Let `console` take any arguments."""
        parser.set_defaults(takes_any=True)

    def run(self, options: argparse.Namespace) -> int:
        """Raise the reason why it cannot run."""
        raise CommandError(self.SUMMARY, status=2)


def load(found: Found, *, is_wanted: bool) -> Command:
    """Return a command. A stub stands for one that cannot run, or that nobody has asked for."""
    if not found.module:
        return _Stub(found.problem)
    if not is_wanted and found.wheel not in WHEELS.values():
        return _Stub(f"of the wheel {found.wheel}; see its own --help")
    try:
        command: Command = import_module(found.module)
        command.add_arguments(argparse.ArgumentParser())
        _ = (command.SUMMARY, command.DESCRIPTION, command.EXIT_STATUS, command.run)
    except (Exception, SystemExit) as error:
        reason = shorten(f"{type(error).__name__}: {error}")
        return _Stub(f"the module {found.module} failed: {reason}")
    return command
