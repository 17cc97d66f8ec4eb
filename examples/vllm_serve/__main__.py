"""Make a small DeepSeek-V3.2, let vLLM serve it over HTTP on a CPU, and compare its tokens.

`tox -e wheels,vllm-demo` builds and installs everything that it needs, and runs it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from examples import program
from examples.vllm_serve import checkpoint

PROMPTS = (
    "Sparse attention reads",
    "The lightning indexer gives every cached token a score. " * 12,
    "A page of the cache holds 128 tokens. " * 30,
)
_START_SECONDS = 600
_POLL_SECONDS = 0.5
_SERVER = (sys.executable, "-m", "vllm.entrypoints.openai.api_server")
_OPTIONS = "--served-model-name small --dtype float32 --max-model-len 2048 --enforce-eager"


@contextmanager
def serve(checkpoint: Path, log: Path) -> Iterator[int]:
    """Start a server, wait until it answers, give its port, and stop it at the end.

    Ends the program when it ends or does not answer; its output is in `log`.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("w") as output:
        where = ("--model", str(checkpoint), "--host", "127.0.0.1", "--port", str(port))
        command = [*_SERVER, *_OPTIONS.split(), *where]
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        end = time.monotonic() + _START_SECONDS
        while not _is_ready(port):
            if process.poll() is not None:
                raise SystemExit(f"the server ended with status {process.returncode}; see {log}")
            if time.monotonic() > end:
                raise SystemExit(f"the server does not answer after {_START_SECONDS} s; see {log}")
            time.sleep(_POLL_SECONDS)
        yield port
    finally:
        process.terminate()
        process.wait()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except OSError:
        return False


def complete(port: int, prompt: str, tokens: int) -> dict[str, Any]:
    """Return the completion of a prompt, with its token ids."""
    body = {
        "model": "small",
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        choice: dict[str, Any] = json.load(answer)["choices"][0]
        return choice


def main(arguments: list[str] | None = None) -> None:
    """Run the example."""
    parser = program.make_parser("vllm_serve", __doc__)
    program.add_number(parser, "--tokens", 32, "tokens of each answer")
    program.add_seed(parser)
    _serve(parser.parse_args(arguments))


def _serve(options: argparse.Namespace) -> None:
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    folder, log = (program.OUTPUT / "vllm" / name for name in ("checkpoint", "server.log"))
    folder.mkdir(parents=True, exist_ok=True)
    program.title(f"Write a small DeepSeek-V3.2 to {folder}")
    model = checkpoint.write(folder, options.seed)

    program.title("Serve it by vLLM")
    start = time.perf_counter()
    with serve(folder, log) as port:
        print(f"  ready after {time.perf_counter() - start:.0f} s; its log is {log}")
        for prompt in PROMPTS:
            answer = complete(port, prompt, options.tokens)
            tokens, context = answer["token_ids"], answer["prompt_token_ids"]
            gap = checkpoint.full_forward_gap(model, context, tokens)
            if gap >= checkpoint.GAP:
                raise SystemExit(
                    f"vLLM's tokens are not transformers' choice (gap {gap:.1e}); please report it"
                )
            print(f"  {len(context):5,} tokens, then {len(tokens)}: transformers' own choice")


if __name__ == "__main__":
    main()
