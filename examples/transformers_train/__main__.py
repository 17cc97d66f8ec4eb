"""Build the wheels, install them, and train a tiny DeepSeek-V3.2, dense and sparse, on a text.

Run from the root of the repository with `tox -e transformers-train`, or, in an environment that has
torch, transformers, matplotlib, tqdm and the build tools, with
`python -m examples.transformers_train`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tqdm import tqdm

from examples import program
from examples.errors import ExampleError
from examples.text import Text


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("transformers_train", __doc__, "transformers_train.png")
    for name, default, what in (
        ("--tokens", 96, "tokens of a sequence"),
        ("--top-k", 16, "tokens that each attends to once attention is sparse"),
        ("--warm-up", 100, "steps with dense attention before"),
        ("--steps", 200, "steps after it, with dense and with sparse attention"),
    ):
        parser.add_argument(
            name,
            type=program.positive,
            default=default,
            metavar="N",
            help=f"{what} (default: {default})",
        )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and batches")
    parser.add_argument(
        "--text", type=Path, metavar="PATH", help="a text to train on (default: Python's manual)"
    )
    return program.run(parser, arguments, _train)


def _train(options: argparse.Namespace) -> None:
    text = Text.load(options.text)
    program.install_transformers(options, "transformers-train")
    # These imports need what was installed just now.
    from examples.transformers_train import picture
    from examples.transformers_train.training import BATCH, Plan, train

    plan = Plan(options.tokens, options.top_k, options.warm_up, options.steps, options.seed)
    program.title("Train: dense attention, then dense and sparse from the same weights")
    print(f"  text      {text.source}, {len(text.data) / 1e6:.1f} MB")
    print(f"  batch     {BATCH} sequences of {plan.tokens} bytes", flush=True)
    start = time.perf_counter()
    with tqdm(total=plan.warm_up + 2 * plan.steps, unit="step", dynamic_ncols=True) as progress:
        curves = train(text, plan, progress.update)
    print(f"\n  {'':24}{'loss at first':>16}{'at last':>10}{'divergence':>13}")
    for curve in curves:
        divergence = curve.indexer_losses[-1]
        print(f"  {curve.name:24}{curve.start:16.3f}{curve.end:10.3f}{divergence:13.3f}")
    picture.draw(curves, options.output)
    print(f"  picture   {options.output}; {time.perf_counter() - start:.0f} s")
    stuck = [curve.name for curve in curves if curve.end >= curve.start]
    if stuck:
        raise ExampleError(
            f"the loss did not fall: {', '.join(stuck)}. Take more --steps; if it happens with"
            " the defaults, please report it"
        )


if __name__ == "__main__":
    sys.exit(main())
