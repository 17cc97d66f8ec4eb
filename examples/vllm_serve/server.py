"""vLLM's HTTP server in a process of its own, and requests to it."""

from __future__ import annotations

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

from examples.program import ExampleError

_START_SECONDS = 600
_POLL_SECONDS = 0.5
_COMMAND = (sys.executable, "-m", "vllm.entrypoints.openai.api_server")


class Server:
    """A server that is ready."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/v1/completions"

    def complete(self, prompt: str, tokens: int) -> dict[str, Any]:
        """Return the completion of a prompt, with its token ids."""
        with self._post(prompt, tokens, stream=False) as answer:
            choice: dict[str, Any] = json.load(answer)["choices"][0]
            return choice

    def stream(self, prompt: str, tokens: int) -> Iterator[str]:
        """Yield the pieces of a completion as the server sends them."""
        with self._post(prompt, tokens, stream=True) as answer:
            for line in answer:
                text = line.decode().removeprefix("data: ").strip()
                if text and text != "[DONE]":
                    yield json.loads(text)["choices"][0]["text"]

    def _post(self, prompt: str, tokens: int, *, stream: bool) -> Any:
        body = {
            "model": "small",
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
            "stream": stream,
        }
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url, json.dumps(body).encode(), headers)
        return urllib.request.urlopen(request)


@contextmanager
def serve(checkpoint: Path, log: Path) -> Iterator[Server]:
    """Start a server, wait until it answers, and stop it at the end.

    Raises ExampleError when it ends or does not answer; its output is in `log`.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*_arguments(checkpoint), "--port", str(port)], stdout=output, stderr=output
        )
    try:
        end = time.monotonic() + _START_SECONDS
        while not _is_ready(port):
            if process.poll() is not None:
                raise ExampleError(f"the server ended with status {process.returncode}; see {log}")
            if time.monotonic() > end:
                raise ExampleError(
                    f"the server does not answer after {_START_SECONDS} s; see {log}"
                )
            time.sleep(_POLL_SECONDS)
        yield Server(port)
    finally:
        process.terminate()
        process.wait()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
            return True
    except OSError:
        return False


def refusal(checkpoint: Path) -> str:
    """Return the message with which vLLM ends where no plugin is loaded. Raises ExampleError."""
    # One process, so that none is left when it ends.
    settings = {"VLLM_PLUGINS": "none", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    code = f"from vllm import LLM; LLM({str(checkpoint)!r}, enforce_eager=True, max_model_len=64)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    for line in (done.stdout + done.stderr).splitlines():
        if "NotImplementedError" in line:
            return "NotImplementedError" + line.partition("NotImplementedError")[2]
    raise ExampleError("vLLM without custom_pypto did not refuse the model")


def _arguments(checkpoint: Path) -> list[str]:
    options = {
        "--model": str(checkpoint),
        "--served-model-name": "small",
        "--dtype": "float32",
        "--max-model-len": "2048",
        "--host": "127.0.0.1",
    }
    return [*_COMMAND, *(each for pair in options.items() for each in pair), "--enforce-eager"]
