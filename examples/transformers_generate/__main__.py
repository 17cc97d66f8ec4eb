"""Build the wheels, install them, and generate with transformers' attention and with ours.

Run from the root of the repository with `tox -e transformers`, or, in an environment that has
torch, transformers, matplotlib, tqdm and the build tools, with
`python -m examples.transformers_generate`.
"""

from __future__ import annotations

import argparse
import sys

from tqdm import tqdm

from examples import program
from examples.program import ExampleError

CONTEXTS = [512, 1024, 2048, 4096, 8192, 16384]


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("transformers_generate", __doc__, "transformers.png")
    program.add_no_install(parser)
    parser.add_argument(
        "--contexts",
        nargs="+",
        type=program.positive,
        default=CONTEXTS,
        metavar="N",
        help=f"lengths of the prompt (default: {' '.join(map(str, CONTEXTS))})",
    )
    program.add_number(parser, "--tokens", 16, "how many to generate after each, at least 2")
    program.add_seed(parser)
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
    prompt = generation.make_prompt(contexts[-1], options.seed)
    total = len(contexts) * len(IMPLEMENTATIONS)
    made = list(tqdm(generation.generate(model, prompt, contexts, tokens), total=total))

    print("\n" + "\n".join(f"  {line}" for line in report.table(made)))
    if contexts[-1] > OWN_PROMPT:
        print(
            f"\n  prompts above {OWN_PROMPT:,} tokens are prefilled by custom_pypto for all three"
        )
    report.draw(made, options.output)
    print(f"  picture   {options.output}")
    wrong = [f"{each.implementation} at {each.context:,}" for each in report.find_differing(made)]
    if wrong:
        raise ExampleError(
            f"tokens differ from eager's ({', '.join(wrong)}). Scores that are nearly equal can do"
            " that; if it happens with another --seed, too, please report it"
        )


if __name__ == "__main__":
    sys.exit(main())
