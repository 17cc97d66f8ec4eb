"""Build the wheels, install them, and train a tiny DeepSeek-V3.2, dense and sparse, on a text.

Run from the root of the repository with `tox -e transformers-train`, or, in an environment that has
torch, transformers, matplotlib, tqdm and the build tools, with
`python -m examples.transformers_train`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from tqdm import tqdm

from examples import program
from examples.program import ExampleError
from examples.text import Text

if TYPE_CHECKING:
    from examples.transformers_train.training import Curve


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("transformers_train", __doc__, "transformers_train.png")
    program.add_no_install(parser)
    program.add_number(parser, "--tokens", 96, "tokens of a sequence")
    program.add_number(parser, "--top-k", 16, "tokens that each attends to once it is sparse")
    program.add_number(parser, "--warm-up", 100, "steps with dense attention before")
    program.add_number(parser, "--steps", 200, "steps after it, with dense and with sparse")
    program.add_seed(parser)
    parser.add_argument(
        "--text", type=Path, metavar="PATH", help="a text to train on (default: Python's manual)"
    )
    return program.run(parser, arguments, _train)


def _train(options: argparse.Namespace) -> None:
    text = Text.load(options.text)
    program.install_transformers(options, "transformers-train")
    # These imports need what was installed just now.
    from examples.transformers_train.training import BATCH, Plan, train

    plan = Plan(options.tokens, options.top_k, options.warm_up, options.steps, options.seed)
    program.title("Train: dense attention, then dense and sparse from the same weights")
    print(f"  text      {text.source}, {len(text.data) / 1e6:.1f} MB")
    print(f"  batch     {BATCH} sequences of {plan.tokens} bytes", flush=True)
    with tqdm(total=plan.warm_up + 2 * plan.steps, unit="step") as progress:
        curves = train(text, plan, progress.update)
    print(f"\n  {'':24}{'loss at first':>16}{'at last':>10}{'divergence':>13}")
    for curve in curves:
        divergence = curve.indexer_losses[-1]
        print(f"  {curve.name:24}{curve.start:16.3f}{curve.end:10.3f}{divergence:13.3f}")
    _draw(curves, options.output)
    print(f"  picture   {options.output}")
    stuck = [curve.name for curve in curves if curve.end >= curve.start]
    if stuck:
        raise ExampleError(
            f"the loss did not fall: {', '.join(stuck)}. Take more --steps; if it happens with"
            " the defaults, please report it"
        )


def _draw(curves: list[Curve], path: Path) -> None:
    """Write a PNG: above, the loss of the text; below, that of the indexers."""
    figure = Figure(figsize=(8, 6), dpi=130, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for curve in curves:
        steps = range(curve.first_step, curve.first_step + len(curve.losses))
        above.plot(steps, curve.losses, label=curve.name, linewidth=0.8)
        below.plot(steps, curve.indexer_losses, linewidth=0.8)
    above.set(title="A tiny DeepSeek-V3.2, trained on the ops", ylabel="loss, nats a byte")
    below.set(xlabel="step", ylabel="indexers' divergence")
    above.legend()
    figure.savefig(path, format="png")


if __name__ == "__main__":
    sys.exit(main())
