"""Build the wheels, install op by op, and decode a text with DeepSeek sparse attention.

Run from the root of the repository with `tox -e demo`, or, in an environment that has torch,
matplotlib, tqdm and the build tools, with `python -m examples.sparse_decode`.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import resource
import sys
import time
from pathlib import Path

from tqdm import tqdm

from examples import wheels
from examples.errors import ExampleError
from examples.options import add_output_and_install, positive, prepare
from examples.sparse_decode import sizes
from examples.sparse_decode.text import Text


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    options = _parser().parse_args(arguments)
    try:
        prepare(options.output)
        text = Text.from_file(options.text) if options.text else Text.python_documentation()
        if options.install:
            _install(options.output.parent)
        _decode(options, text)
    except ExampleError as error:
        print(f"sparse_decode: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sparse_decode", description=(__doc__ or "").split("\n")[0]
    )
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
    parser.add_argument("--steps", type=positive, metavar="N", help="how many steps to decode")
    add_output_and_install(parser, "selection.png")
    return parser


def _install(folder: Path) -> None:
    _title("Build the wheels: the build backend, core, and one for each op plugin")
    start = time.perf_counter()
    wheelhouse = folder / "wheels"
    for wheel in wheels.build_and_install(wheels.PROJECTS, wheelhouse):
        print(f"  {wheel.stat().st_size / 1024:7.0f} KiB  {wheel}")
    print(f"  in {time.perf_counter() - start:.0f} s")

    _title("Install them one by one, and look at what is there")
    for distribution, listing in wheels.install_one_by_one(wheelhouse):
        print(f"$ pip install --no-index --find-links {wheelhouse} {distribution}")
        print("$ custom-pypto list")
        print("\n".join(f"  {line}" for line in listing.splitlines()), flush=True)
    importlib.invalidate_caches()


def _decode(options: argparse.Namespace, text: Text) -> None:
    # These imports need the ops, which were installed just now.
    from examples.sparse_decode import report
    from examples.sparse_decode.decode import decode
    from examples.sparse_decode.picture import draw
    from examples.sparse_decode.session import Session

    size = sizes.ALL[options.size]
    if options.steps:
        size = dataclasses.replace(size, steps=options.steps)

    _title(f"Decode {size.steps} tokens of {len(size.contexts)} sequences, {size.name} sizes")
    print(f"  text      {text.source}, {len(text.data):,} bytes")
    if len(text.data) < sum(size.contexts):
        print("  note      the text is shorter than the contexts together: it is read in a loop")
    print(f"  contexts  {', '.join(f'{context:,}' for context in size.contexts)}", flush=True)
    session = Session(size, text)
    with tqdm(
        total=sum(size.contexts) - len(size.contexts),
        desc="prefill",
        unit="token",
        unit_scale=True,
        dynamic_ncols=True,
    ) as progress:
        for tokens in session.prefill():
            progress.update(tokens)
    blocks = session.cache.used_blocks
    steps = []
    with tqdm(total=size.steps, desc="decode", unit="step", dynamic_ncols=True) as progress:
        for step in decode(session, size.steps):
            steps.append(step)
            progress.set_postfix_str(
                f"ours {step.ours_seconds * 1e3:.0f} ms, eager {step.eager_seconds * 1e3:.0f} ms,"
                f" error {step.ours.relative_l2:.0e}"
            )
            progress.update()

    print("\n  every step is within the published tolerance of the reference; the caches grew")
    print(f"  from {blocks} to {steps[-1].blocks} blocks of {size.block_size} tokens\n")
    for line in (*report.timing_table(steps), "", *report.closeness_table(steps)):
        print(f"  {line}")

    _title("What the indexer looked up in the last step")
    print("\n".join(report.looked_up(session, steps[-1])))

    draw(steps, size, text, options.output)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\n  picture   {options.output}")
    print(f"  memory    {peak:.1f} GiB at most")


def _title(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
