"""The command line of an example: its options and its errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


class ExampleError(Exception):
    """Something that the user can act on; the message says what and how."""


OUTPUT = Path("demo_output")
"""The folder that examples write into."""


def make_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of an example; `description` says in its first line what that does."""
    return argparse.ArgumentParser(prog=name, description=(description or "").split("\n")[0])


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add --seed."""
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is random")


def add_number(parser: argparse.ArgumentParser, name: str, default: int, what: str) -> None:
    """Add an option that is a number of at least 1."""
    text = f"{what} (default: %(default)s)"
    parser.add_argument(name, type=positive, default=default, metavar="N", help=text)


def positive(text: str) -> int:
    """Return the value of an option that is a number of at least 1.

    Raises ArgumentTypeError for anything else.
    """
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def run(
    parser: argparse.ArgumentParser,
    arguments: list[str] | None,
    work: Callable[[argparse.Namespace], None],
) -> int:
    """Do the work that a command line asks for; return the process's exit status.

    An ExampleError, or a file that cannot be written, ends the example with its message.
    """
    options = parser.parse_args(arguments)
    try:
        work(options)
    except (ExampleError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


def title(text: str) -> None:
    """Print a title."""
    print(f"\n== {text}", flush=True)
