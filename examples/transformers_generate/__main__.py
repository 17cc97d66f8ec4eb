"""Build the wheels, install them, and generate with transformers' attention and with ours.

Run from the root of the repository with `tox -e transformers`, or, in an environment that has
torch, transformers, matplotlib, tqdm and the build tools, with
`python -m examples.transformers_generate`.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
import time
from pathlib import Path

from tqdm import tqdm

from examples import wheels
from examples.errors import ExampleError, MissingError
from examples.options import add_output_and_install, positive, prepare
from examples.transformers_generate.errors import TokenError

CONTEXTS = [512, 1024, 2048, 4096, 8192, 16384]


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    options = _parser().parse_args(arguments)
    try:
        prepare(options.output)
        if options.install:
            _install(options.output.parent / "wheels")
        _generate(options)
    except ExampleError as error:
        print(f"transformers_generate: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="transformers_generate", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--contexts",
        nargs="+",
        type=positive,
        default=CONTEXTS,
        metavar="N",
        help=f"lengths of the prompt (default: {' '.join(map(str, CONTEXTS))})",
    )
    parser.add_argument(
        "--tokens", type=positive, default=16, metavar="N", help="how many to generate after each"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the weights and the prompt"
    )
    add_output_and_install(parser, "transformers.png")
    return parser


def _install(wheelhouse: Path) -> None:
    _title("Build and install: core, the ops, and the integration with transformers")
    wheels.build_and_install(wheels.FOR_TRANSFORMERS, wheelhouse)
    importlib.invalidate_caches()


def _generate(options: argparse.Namespace) -> None:
    # These imports need what was installed just now.
    try:
        import custom_pypto_transformers  # noqa: F401
    except ImportError as error:
        raise MissingError(
            f"{error}; `tox -e transformers` installs everything that this example needs"
        ) from None
    from examples.transformers_generate import picture, report
    from examples.transformers_generate.generation import IMPLEMENTATIONS, OWN_PROMPT, generate
    from examples.transformers_generate.model import make, make_prompt

    contexts = sorted(set(options.contexts))
    # The time of a token needs two.
    tokens = max(options.tokens, 2)
    _title(f"Generate {tokens} tokens by {', '.join(IMPLEMENTATIONS)}")
    model = make(options.seed)
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"  model     {type(model).__name__}, {weights / 1e6:.1f} M random weights, fp32")
    print(f"  prompts   {', '.join(f'{context:,}' for context in contexts)} tokens", flush=True)
    start = time.perf_counter()
    results = []
    total = len(contexts) * len(IMPLEMENTATIONS) * tokens
    with tqdm(total=total, unit="token", dynamic_ncols=True) as progress:
        prompt = make_prompt(contexts[-1], options.seed)
        for made in generate(model, prompt, contexts, tokens, progress.update):
            results.append(made)
            progress.set_description(f"{made.context:,}")
            progress.set_postfix_str(f"{made.implementation} {made.seconds * 1e3:.1f} ms a token")

    print()
    for line in report.table(results):
        print(f"  {line}")
    if contexts[-1] > OWN_PROMPT:
        print(
            f"\n  prompts above {OWN_PROMPT:,} tokens are prefilled by custom_pypto for all three"
        )
    picture.draw(results, options.output)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  picture   {options.output}")
    print(f"  memory    {peak:.1f} GiB at most; {time.perf_counter() - start:.0f} s")
    wrong = [f"{made.implementation} at {made.context:,}" for made in report.differing(results)]
    if wrong:
        raise TokenError(
            f"tokens differ from eager's ({', '.join(wrong)}). Scores that are nearly equal can do"
            " that; if it happens with another --seed, too, please report it"
        )


def _title(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
