"""The command line of an example: its options, its preparations, and its errors."""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from examples import wheels
from examples.errors import ExampleError


def make_parser(name: str, description: str | None, picture: str) -> argparse.ArgumentParser:
    """Return the parser of an example, with --output, which is a `picture`, and --no-install.

    The first line of `description` says what the example does.
    """
    parser = argparse.ArgumentParser(prog=name, description=(description or "").split("\n")[0])
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
    return parser


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

    An ExampleError ends the example with its message.
    """
    options = parser.parse_args(arguments)
    try:
        _prepare(options.output)
        work(options)
    except ExampleError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


def install_transformers(options: argparse.Namespace, environment: str) -> None:
    """Install what models of transformers run on, unless --no-install.

    Raises ExampleError when it is missing then; tox's `environment` installs all.
    """
    if options.install:
        title("Build and install: core, the ops, and the integration with transformers")
        wheelhouse = options.output.parent / "wheels"
        wheels.build(wheelhouse, wheels.FOR_TRANSFORMERS)
        wheels.install(wheelhouse, wheels.FOR_TRANSFORMERS)
        importlib.invalidate_caches()
    try:
        import custom_pypto_transformers  # noqa: F401
    except ImportError as error:
        raise ExampleError(
            f"{error}; `tox -e {environment}` installs everything that this example needs"
        ) from None


def title(text: str) -> None:
    """Print a title."""
    print(f"\n== {text}", flush=True)


def peak_memory() -> str:
    """Return the most memory that this process had, as text."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GiB at most"


def _prepare(output: Path) -> None:
    """Make the folder of a picture, and fail now, not after minutes, if it cannot be written."""
    if output.suffix != ".png":
        raise ExampleError(
            f"--output {output}: the picture is a PNG; name a file that ends in .png"
        )
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.open("ab").close()
    except OSError as error:
        raise ExampleError(
            f"--output {output}: {error.strerror}; name a file that can be written"
        ) from None
