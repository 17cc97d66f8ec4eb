"""Options that the command lines of the examples share."""

from __future__ import annotations

import argparse
from pathlib import Path

from examples.errors import OutputError


def positive(text: str) -> int:
    """Return the value of an option that is a number of at least 1.

    Raises ArgumentTypeError for anything else.
    """
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def add_output_and_install(parser: argparse.ArgumentParser, picture: str) -> None:
    """Add --output, which `prepare` takes, and --no-install."""
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        default=Path("demo_output", picture),
        help="where to write the picture (default: %(default)s); the wheels go beside it",
    )
    parser.add_argument(
        "--no-install",
        dest="install",
        action="store_false",
        help="neither build nor install; use what is installed",
    )


def prepare(output: Path) -> None:
    """Make the folder of a picture, and fail now, not after minutes, if it cannot be written.

    Raises OutputError.
    """
    if output.suffix != ".png":
        raise OutputError(f"--output {output}: the picture is a PNG; name a file that ends in .png")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.open("ab").close()
    except OSError as error:
        raise OutputError(
            f"--output {output}: {error.strerror}; name a file that can be written"
        ) from None
