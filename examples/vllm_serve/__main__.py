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
from pathlib import Path

from examples import program
from examples.errors import ExampleError

PROMPTS = (
    "Sparse attention reads",
    "The lightning indexer gives every cached token a score. " * 12,
    "A page of the cache holds 128 tokens. " * 30,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the example; return the process's exit status."""
    parser = argparse.ArgumentParser(prog="vllm_serve", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        default=Path("demo_output", "vllm"),
        help="where the checkpoint and the server's log go (default: %(default)s)",
    )
    parser.add_argument("--tokens", type=program.positive, default=32, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the weights")
    options = parser.parse_args(arguments)
    try:
        _serve(options)
    except ExampleError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


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
            begin, pieces = time.perf_counter(), []
            for piece in server.stream(prompt, options.tokens):
                pieces.append((time.perf_counter() - begin, piece))
            tokens, context = answer["token_ids"], answer["prompt_token_ids"]
            if "".join(piece for _, piece in pieces) != answer["text"]:
                raise ExampleError("the streamed text is not that of the other answer")
            gap = checkpoint.full_forward_gap(model, context, tokens)
            pace = (pieces[-1][0] - pieces[0][0]) / max(len(tokens) - 1, 1)
            verdict = "equal to" if gap < checkpoint.GAP else f"NOT (gap {gap:.1e}) those of"
            print(
                f"  {len(context):5,} tokens, then {len(tokens)}: {verdict} transformers' full"
                f" forward; {pace * 1e3:.1f} ms a token, streamed in {len(pieces)} pieces"
            )
            if gap >= checkpoint.GAP:
                raise ExampleError("vLLM's tokens are not transformers' choice; please report it")


if __name__ == "__main__":
    sys.exit(main())
