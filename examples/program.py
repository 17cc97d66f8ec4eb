"""The command line of an example: its options, the wheels that it installs, and its errors."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

DISTRIBUTIONS = Path(__file__).resolve().parents[1] / ".ci" / "distributions.py"
BASE = ("contract", "builder", "core", "blocks")
ATTENTION = ("plugins/lightning_indexer", "plugins/sparse_attention")


class ExampleError(Exception):
    """Something that the user can act on; the message says what and how."""


def make_parser(name: str, description: str | None, output: str) -> argparse.ArgumentParser:
    """Return the parser of an example, with --output, which is a file or a folder.

    The first line of `description` says what the example does.
    """
    parser = argparse.ArgumentParser(prog=name, description=(description or "").split("\n")[0])
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        default=Path("demo_output", output),
        help="where to write (default: %(default)s); wheels go beside it",
    )
    return parser


def add_no_install(parser: argparse.ArgumentParser) -> None:
    """Add --no-install."""
    parser.add_argument(
        "--no-install",
        dest="install",
        action="store_false",
        help="neither build nor install; use what is installed",
    )


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

    An ExampleError ends the example with its message. An output that cannot be written ends it
    before the work.
    """
    options = parser.parse_args(arguments)
    try:
        try:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            if options.output.suffix:
                options.output.open("ab").close()
        except OSError as error:
            raise ExampleError(
                f"--output {options.output}: {error.strerror}; name a file that can be written"
            ) from None
        work(options)
    except ExampleError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


def title(text: str) -> None:
    """Print a title."""
    print(f"\n== {text}", flush=True)


def build(wheelhouse: Path, folders: Sequence[str]) -> None:
    """Build the wheels of the distributions in `folders`, and print each.

    Raises ExampleError when one fails, below its tool's output, and outside a virtual environment.
    """
    # An example may change a virtual environment at will.
    if sys.prefix == sys.base_prefix:
        raise ExampleError(
            "the example installs and removes wheels, so it only runs in a virtual environment;"
            " run it by tox, or with --no-install to use what is installed"
        )
    run_command(sys.executable, DISTRIBUTIONS, "build", wheelhouse, *folders)


def install_transformers(options: argparse.Namespace, environment: str) -> None:
    """Install what models of transformers run on, unless --no-install.

    Raises ExampleError when it is missing then; tox's `environment` installs all.
    """
    if options.install:
        title("Build and install: core, the ops, and the integration with transformers")
        wheelhouse = options.output.parent / "wheels"
        folders = (*BASE, *ATTENTION, "integrations/transformers")
        build(wheelhouse, folders)
        run_command(sys.executable, DISTRIBUTIONS, "install", wheelhouse, *folders)
        importlib.invalidate_caches()
    try:
        import custom_pypto_transformers  # noqa: F401
    except ImportError as error:
        raise ExampleError(
            f"{error}; `tox -e {environment}` installs everything that this example needs"
        ) from None


def run_command(*command: str | Path, capture: bool = False) -> str:
    """Run a command; return what it prints, if that is captured. Raises ExampleError."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=capture, text=True)
    if done.returncode:
        words = " ".join(map(str, command))
        printed = f":\n{done.stdout}{done.stderr}" if capture else "; see its output above"
        raise ExampleError(f"{words} ended with status {done.returncode}{printed}")
    return done.stdout or ""
