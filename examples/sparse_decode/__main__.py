"""Build the wheels, install op by op, and decode a text with DeepSeek sparse attention.

Run from the root of the repository with `tox -e demo`, or, in an environment that has torch,
matplotlib, tqdm and the build tools, with `python -m examples.sparse_decode`.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import sys
import time
from pathlib import Path

from tqdm import tqdm

from examples import program
from examples.sparse_decode import sizes
from examples.text import Text

_OPS = ("plugins/add_custom", *program.ATTENTION)


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("sparse_decode", __doc__, "selection.png")
    program.add_no_install(parser)
    parser.add_argument(
        "--size",
        choices=sorted(sizes.ALL),
        default="deepseek",
        help="deepseek: the sizes of DeepSeek-V3.2, minutes; small: seconds (default: %(default)s)",
    )
    parser.add_argument(
        "--text",
        type=Path,
        metavar="PATH",
        help="text to decode, one token per byte (default: the manual that this Python ships)",
    )
    program.add_number(parser, "--steps", 24, "how many steps to decode")
    return program.run(parser, arguments, _work)


def _work(options: argparse.Namespace) -> None:
    text = Text.load(options.text)
    if options.install:
        _install(options.output.parent / "wheels")
    _decode(options, text)


def _install(wheelhouse: Path) -> None:
    """Install core, then op by op, and show what `custom-pypto list` prints.

    The contract comes with core, which requires it. The builder stays: timing needs its compiler.
    """
    program.title("Build the wheels: the build backend, core, and one for each op plugin")
    start = time.perf_counter()
    program.build(wheelhouse, (*program.BASE, "testing", *_OPS))
    print(f"  in {time.perf_counter() - start:.0f} s")

    program.title("Install them one by one, and look at what is there")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    installed = _names("contract", "core", "blocks", "testing", "plugins/*")
    program.run_command(*pip, "uninstall", "--yes", *installed, capture=True)
    for name in _names("core", "blocks", "testing", *_OPS):
        install = ("install", "--no-index", "--find-links", wheelhouse, name)
        program.run_command(*pip, *install, capture=True)
        print("$ pip", *install)
        print("$ custom-pypto list")
        listed = program.run_command(
            Path(sys.executable).with_name("custom-pypto"), "list", capture=True
        )
        print("\n".join(f"  {line}" for line in listed.rstrip().splitlines()), flush=True)
    importlib.invalidate_caches()


def _names(*folders: str) -> list[str]:
    return program.run_command(
        sys.executable, program.DISTRIBUTIONS, "list", *folders, capture=True
    ).split()


def _decode(options: argparse.Namespace, text: Text) -> None:
    # These imports need the ops, which were installed just now.
    from examples.sparse_decode import report
    from examples.sparse_decode.decode import decode
    from examples.sparse_decode.picture import draw
    from examples.sparse_decode.session import Session

    size = dataclasses.replace(sizes.ALL[options.size], steps=options.steps)
    program.title(
        f"Decode {size.steps} tokens of {len(size.contexts)} sequences, {size.name} sizes"
    )
    print(f"  text      {text.source}, {len(text.data):,} bytes")
    if len(text.data) < sum(size.contexts):
        print("  note      the text is shorter than the contexts together: it is read in a loop")
    print(f"  contexts  {', '.join(f'{context:,}' for context in size.contexts)}", flush=True)
    session = Session(size, text)
    total = sum(size.contexts) - len(size.contexts)
    with tqdm(total=total, desc="prefill", unit="token", unit_scale=True) as progress:
        for tokens in session.prefill():
            progress.update(tokens)
    blocks = session.cache.used_blocks
    steps = list(tqdm(decode(session, size.steps), "decode", size.steps, unit="step"))

    print("\n  every step is within the published tolerance of the reference; the caches grew")
    print(f"  from {blocks} to {steps[-1].blocks} blocks of {size.block_size} tokens\n")
    for line in (*report.timing_table(steps), "", *report.closeness_table(steps)):
        print(f"  {line}")
    draw(steps, size, options.output)
    print(f"\n  picture   {options.output}")


if __name__ == "__main__":
    sys.exit(main())
