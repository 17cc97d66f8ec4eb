"""Build the wheels, install op by op, and decode a text with DeepSeek sparse attention.

Run from the root of the repository with `tox -e demo`, or, in an environment that has torch,
tqdm and the build tools, with `python -m examples.sparse_decode`.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tqdm import tqdm

from examples import program

if TYPE_CHECKING:
    from examples.sparse_decode.decode import Step

_DISTRIBUTIONS = Path(__file__).resolve().parents[2] / ".ci" / "distributions.py"
_OPS = ("plugins/add_custom", "plugins/lightning_indexer", "plugins/sparse_attention")


def main(arguments: list[str] | None = None) -> None:
    """Run the example."""
    parser = program.make_parser("sparse_decode", __doc__)
    parser.add_argument(
        "--no-install",
        dest="install",
        action="store_false",
        help="neither build nor install; use what is installed",
    )
    parser.add_argument(
        "--size",
        choices=("deepseek", "small"),
        default="deepseek",
        help="deepseek: the sizes of DeepSeek-V3.2, minutes; small: seconds (default: %(default)s)",
    )
    program.add_number(parser, "--steps", 24, "how many steps to decode")
    options = parser.parse_args(arguments)
    if options.install:
        _install(program.OUTPUT / "wheels")
    _decode(options)


def _install(wheelhouse: Path) -> None:
    """Install core, then op by op, and show what `custom-pypto list` prints."""
    # An example may change a virtual environment at will.
    if sys.prefix == sys.base_prefix:
        raise SystemExit(
            "the example installs and removes wheels, so it only runs in a virtual environment;"
            " run it by tox, or with --no-install to use what is installed"
        )
    program.title("Build the wheels: the build backend, core, and one for each op plugin")
    start = time.perf_counter()
    folders = ("contract", "builder", "core", "blocks", "testing", *_OPS)
    _run(sys.executable, _DISTRIBUTIONS, "build", wheelhouse, *folders, capture=False)
    print(f"  in {time.perf_counter() - start:.0f} s")

    program.title("Install them one by one, and look at what is there")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    _run(*pip, "uninstall", "--yes", *_names("contract", "core", "blocks", "testing", "plugins/*"))
    for name in _names("core", "blocks", "testing", *_OPS):
        install = ("install", "--no-index", "--find-links", wheelhouse, name)
        _run(*pip, *install)
        print("$ pip", *install)
        print("$ custom-pypto list")
        listed = _run(Path(sys.executable).with_name("custom-pypto"), "list")
        print("\n".join(f"  {line}" for line in listed.rstrip().splitlines()), flush=True)
    importlib.invalidate_caches()


def _names(*folders: str) -> list[str]:
    return _run(sys.executable, _DISTRIBUTIONS, "list", *folders).split()


def _run(*command: str | Path, capture: bool = True) -> str:
    """Run a command; return what it prints, if that is captured."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=capture, text=True)
    if done.returncode:
        words = " ".join(map(str, command))
        printed = f":\n{done.stdout}{done.stderr}" if capture else "; see its output above"
        raise SystemExit(f"{words} ended with status {done.returncode}{printed}")
    return done.stdout or ""


def _decode(options: argparse.Namespace) -> None:
    # These imports need the ops, which were installed just now.
    from examples.sparse_decode import layer
    from examples.sparse_decode.decode import decode
    from examples.sparse_decode.session import TEXT, Session

    size = dataclasses.replace(layer.SIZES[options.size], steps=options.steps)
    program.title(f"Decode {size.steps} tokens of {len(size.lengths)} sequences, {size.name} sizes")
    print(f"  text      Python's manual (pydoc_data/topics.py), {len(TEXT):,} bytes")
    print(f"  contexts  {', '.join(f'{context:,}' for context in size.lengths)}", flush=True)
    session = Session(size)
    total = sum(size.lengths) - len(size.lengths)
    with tqdm(total=total, desc="prefill", unit="token", unit_scale=True) as progress:
        for tokens in session.prefill():
            progress.update(tokens)
    blocks = session.cache.used_blocks
    steps = list(tqdm(decode(session, size.steps), "decode", size.steps, unit="step"))

    print("\n  every step is within the published tolerance of the reference; the caches grew")
    print(f"  from {blocks} to {steps[-1].blocks} blocks of {size.block_size} tokens\n")
    for line in (*_timing_table(steps), "", *_closeness_table(steps)):
        print(f"  {line}")


def _timing_table(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of the table of time per step."""
    ours = [step.ours_seconds * 1e3 for step in steps]
    eager = [step.eager_seconds * 1e3 for step in steps]
    # The first step is a warm-up of both: code paths and buffers are touched first there.
    warm = slice(1, None) if len(steps) > 1 else slice(None)
    yield f"{'time per step':<24}{'median':>10}{'fastest':>10}{'slowest':>10}{'first':>10}"
    baseline = f"torch eager in {steps[0].eager_products}"
    for name, times in (("custom_pypto", ours), (baseline, eager)):
        rest = times[warm]
        columns = (median(rest), min(rest), max(rest), times[0])
        yield f"{name:<24}" + "".join(f"{value:>7.1f} ms" for value in columns)
    yield f"{'torch eager / ours':<24}{median(eager[warm]) / median(ours[warm]):>9.2f}x"


def _closeness_table(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of the table that compares both with the reference, in their worst step."""
    yield f"{'worst step against fp32':<24}{'elements close':>20}{'relative L2 error':>20}"
    for name, all_steps in (
        ("custom_pypto", [step.ours for step in steps]),
        ("torch eager", [step.eager for step in steps]),
    ):
        share = min(step.share for step in all_steps)
        error = max(step.relative_l2 for step in all_steps)
        yield f"{name:<24}{share:>20.3%}{error:>20.2e}"


if __name__ == "__main__":
    main()
