"""Build the wheels, install them, and generate with transformers' attention and with ours.

Run from the root of the repository with `tox -e transformers`, or, in an environment that has
torch, transformers, matplotlib, tqdm and the build tools, with
`python -m examples.transformers_generate`.
"""

from __future__ import annotations

import argparse
import sys
import time

from tqdm import tqdm

from examples import program
from examples.errors import ExampleError

CONTEXTS = [512, 1024, 2048, 4096, 8192, 16384]


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("transformers_generate", __doc__, "transformers.png")
    parser.add_argument(
        "--contexts",
        nargs="+",
        type=program.positive,
        default=CONTEXTS,
        metavar="N",
        help=f"lengths of the prompt (default: {' '.join(map(str, CONTEXTS))})",
    )
    parser.add_argument(
        "--tokens",
        type=program.positive,
        default=16,
        metavar="N",
        help="how many to generate after each",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the weights and the prompt"
    )
    return program.run(parser, arguments, _generate)


def _generate(options: argparse.Namespace) -> None:
    program.install_transformers(options, "transformers")
    # These imports need what was installed just now.
    from examples.transformers_generate import generation, report
    from examples.transformers_generate.generation import IMPLEMENTATIONS, OWN_PROMPT

    contexts = sorted(set(options.contexts))
    # The time of a token needs two.
    tokens = max(options.tokens, 2)
    program.title(f"Generate {tokens} tokens by {', '.join(IMPLEMENTATIONS)}")
    model = generation.make_model(options.seed)
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"  model     {type(model).__name__}, {weights / 1e6:.1f} M random weights, fp32")
    print(f"  prompts   {', '.join(f'{context:,}' for context in contexts)} tokens", flush=True)
    start = time.perf_counter()
    results = []
    total = len(contexts) * len(IMPLEMENTATIONS) * tokens
    with tqdm(total=total, unit="token", dynamic_ncols=True) as progress:
        prompt = generation.make_prompt(contexts[-1], options.seed)
        for made in generation.generate(model, prompt, contexts, tokens, progress.update):
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
    report.draw(results, options.output)
    print(f"  picture   {options.output}")
    print(f"  memory    {program.peak_memory()}; {time.perf_counter() - start:.0f} s")
    wrong = [
        f"{made.implementation} at {made.context:,}" for made in report.find_differing(results)
    ]
    if wrong:
        raise ExampleError(
            f"tokens differ from eager's ({', '.join(wrong)}). Scores that are nearly equal can do"
            " that; if it happens with another --seed, too, please report it"
        )


if __name__ == "__main__":
    sys.exit(main())
