"""Builds the wheels, and installs them as a user would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from examples.errors import ExampleError

DISTRIBUTIONS = Path(__file__).resolve().parents[1] / ".ci" / "distributions.py"
_BASE = ("contract", "builder", "core", "blocks")
_ATTENTION = ("plugins/lightning_indexer", "plugins/sparse_attention")
OPS = (*_BASE, "testing", "plugins/add_custom", *_ATTENTION)
"""The folders of the distributions that decoding and its check need, and of the smallest op."""
FOR_TRANSFORMERS = (*_BASE, *_ATTENTION, "integrations/transformers")
"""The folders of the distributions that models of transformers need."""


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
    _run(sys.executable, DISTRIBUTIONS, "build", wheelhouse, *folders)


def install(wheelhouse: Path, folders: Sequence[str]) -> None:
    """Replace the installed distributions in `folders` by their wheels. Raises ExampleError."""
    _run(sys.executable, DISTRIBUTIONS, "install", wheelhouse, *folders)


def install_one_by_one(wheelhouse: Path) -> Iterator[tuple[str, str]]:
    """Install core, then op by op; yield each distribution and what `custom-pypto list` prints.

    The contract comes with core, which requires it. The builder stays: timing needs its compiler.
    Raises ExampleError when something fails.
    """
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    _output(
        *pip, "uninstall", "--yes", *_names("contract", "core", "blocks", "testing", "plugins/*")
    )
    for name in _names(*OPS[2:]):
        _output(*pip, "install", "--no-index", "--find-links", wheelhouse, name)
        yield name, _output(Path(sys.executable).with_name("custom-pypto"), "list").rstrip()


def _names(*folders: str) -> list[str]:
    return _output(sys.executable, DISTRIBUTIONS, "list", *folders).split()


def _output(*command: str | Path) -> str:
    return _run(*command, capture=True)


def _run(*command: str | Path, capture: bool = False) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=capture, text=True)
    if done.returncode:
        words = " ".join(map(str, command))
        printed = f":\n{done.stdout}{done.stderr}" if capture else "; see its output above"
        raise ExampleError(f"{words} ended with status {done.returncode}{printed}")
    return done.stdout or ""
