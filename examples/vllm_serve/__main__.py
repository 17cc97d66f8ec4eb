"""Make a small DeepSeek-V3.2, and let vLLM serve it over HTTP on a CPU.

Run from the root of the repository with `tox -e wheels,vllm-demo`, which builds and installs all,
or, where that is installed, with `python -m examples.vllm_serve`.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time

from examples import program
from examples.program import ExampleError

PROMPTS = (
    "Sparse attention reads",
    "The lightning indexer gives every cached token a score. " * 12,
    "A page of the cache holds 128 tokens. " * 30,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = program.make_parser("vllm_serve", __doc__, "vllm")
    program.add_number(parser, "--tokens", 32, "tokens of each answer")
    program.add_seed(parser)
    return program.run(parser, arguments, _serve)


def _serve(options: argparse.Namespace) -> None:
    for package in ("vllm", "custom_pypto_vllm"):
        if importlib.util.find_spec(package) is None:
            raise ExampleError(f"{package} is not installed; `tox -e vllm-demo` installs all")
    from examples.vllm_serve import checkpoint
    from examples.vllm_serve.server import refusal, serve

    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    folder = options.output / "checkpoint"
    folder.mkdir(parents=True, exist_ok=True)
    program.title(f"Write a small DeepSeek-V3.2 to {folder}")
    model = checkpoint.write(folder, options.seed)

    program.title("vLLM without custom_pypto")
    print(f"  {refusal(folder)}")

    program.title("vLLM with custom_pypto")
    log = options.output / "server.log"
    start = time.perf_counter()
    with serve(folder, log) as server:
        print(f"  ready after {time.perf_counter() - start:.0f} s; its log is {log}")
        for prompt in PROMPTS:
            answer = server.complete(prompt, options.tokens)
            if "".join(server.stream(prompt, options.tokens)) != answer["text"]:
                raise ExampleError("the streamed text is not that of the other answer")
            tokens, context = answer["token_ids"], answer["prompt_token_ids"]
            gap = checkpoint.full_forward_gap(model, context, tokens)
            if gap >= checkpoint.GAP:
                raise ExampleError(
                    f"vLLM's tokens are not transformers' choice (gap {gap:.1e}); please report it"
                )
            print(
                f"  {len(context):5,} tokens, then {len(tokens)}: equal to transformers' full"
                " forward, whole and streamed"
            )


if __name__ == "__main__":
    sys.exit(main())
