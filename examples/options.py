"""What the command lines of the examples have in common."""

from __future__ import annotations

import argparse
from pathlib import Path

from examples.sparse_decode.errors import OutputError


def positive(text: str) -> int:
    """Return the number that an option was given.

    Raises ArgumentTypeError when it is none of at least 1.
    """
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def prepare(output: Path) -> None:
    """Make the folder of a picture, and see now, not after minutes, that it can be written.

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
