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

from examples import program, wheels
from examples.sparse_decode import sizes
from examples.text import Text


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("sparse_decode", __doc__, "selection.png")
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
    parser.add_argument(
        "--steps", type=program.positive, metavar="N", help="how many steps to decode"
    )
    return program.run(parser, arguments, _work)


def _work(options: argparse.Namespace) -> None:
    text = Text.load(options.text)
    if options.install:
        _install(options.output.parent / "wheels")
    _decode(options, text)


def _install(wheelhouse: Path) -> None:
    program.title("Build the wheels: the build backend, core, and one for each op plugin")
    start = time.perf_counter()
    wheels.build(wheelhouse, wheels.OPS)
    print(f"  in {time.perf_counter() - start:.0f} s")

    program.title("Install them one by one, and look at what is there")
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

    program.title(
        f"Decode {size.steps} tokens of {len(size.contexts)} sequences, {size.name} sizes"
    )
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

    program.title("What the indexer looked up in the last step")
    print("\n".join(report.lookup_table(session, steps[-1])))

    draw(steps, size, text, options.output)
    print(f"\n  picture   {options.output}")
    print(f"  memory    {program.peak_memory()}")


if __name__ == "__main__":
    sys.exit(main())
