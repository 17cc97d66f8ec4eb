"""The command line of an example: its options and its titles."""

from __future__ import annotations

import argparse
from pathlib import Path

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


def title(text: str) -> None:
    """Print a title."""
    print(f"\n== {text}", flush=True)
