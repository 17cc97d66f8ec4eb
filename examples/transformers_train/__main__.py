"""Build the wheels, install them, and train a tiny DeepSeek-V3.2, dense and sparse, on a text.

Run from the root of the repository with `tox -e transformers-train`, or, in an environment that has
torch, transformers, matplotlib, tqdm and the build tools, with
`python -m examples.transformers_train`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from tqdm import tqdm

from examples import wheels
from examples.errors import ExampleError, MissingError
from examples.options import add_output_and_install, positive, prepare
from examples.sparse_decode.text import Text
from examples.transformers_train.errors import LossError


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    options = _parser().parse_args(arguments)
    try:
        prepare(options.output)
        if options.install:
            _install(options.output.parent / "wheels")
        _train(options)
    except ExampleError as error:
        print(f"transformers_train: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="transformers_train", description=(__doc__ or "").split("\n")[0]
    )
    for name, default, what in (
        ("--tokens", 96, "tokens of a sequence"),
        ("--top-k", 16, "tokens that each attends to once attention is sparse"),
        ("--warm-up", 100, "steps with dense attention before"),
        ("--steps", 200, "steps after it, with dense and with sparse attention"),
    ):
        parser.add_argument(
            name, type=positive, default=default, metavar="N", help=f"{what} (default: {default})"
        )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and batches")
    parser.add_argument(
        "--text", type=Path, metavar="PATH", help="a text to train on (default: Python's manual)"
    )
    add_output_and_install(parser, "transformers_train.png")
    return parser


def _install(wheelhouse: Path) -> None:
    _title("Build and install: core, the ops, and the integration with transformers")
    wheels.build_and_install(wheels.FOR_TRANSFORMERS, wheelhouse)
    importlib.invalidate_caches()


def _train(options: argparse.Namespace) -> None:
    # These imports need what was installed just now.
    try:
        import custom_pypto_transformers  # noqa: F401
    except ImportError as error:
        raise MissingError(
            f"{error}; `tox -e transformers-train` installs everything that this example needs"
        ) from None
    from examples.transformers_train import picture
    from examples.transformers_train.training import BATCH, Plan, train

    text = Text.from_file(options.text) if options.text else Text.python_documentation()
    plan = Plan(options.tokens, options.top_k, options.warm_up, options.steps, options.seed)
    _title("Train: dense attention, then dense and sparse from the same weights")
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
        raise LossError(
            f"the loss did not fall: {', '.join(stuck)}. Take more --steps; if it happens with"
            " the defaults, please report it"
        )


def _title(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
