"""Time a decode step of DeepSeek-V3.2 and GLM-5 in transformers: its own attention against ours.

Run from the root of the repository with `tox -e wheels,transformers-bench`, or, where the wheels
and transformers are installed, with `python -m benchmarks.transformers`. README.md in the folder
above says how to read the table.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from functools import partial

import torch
from custom_pypto_testing.timing import process_memory
from custom_pypto_testing.timing.interleaved import Timed, time_interleaved
from custom_pypto_testing.timing.measured import Measured, number, ratio_of, time_of

from benchmarks.run import Run, Worker, make_parser
from benchmarks.transformers import decoding, models
from benchmarks.transformers.decoding import GROWING, OURS, First

WAYS = ("eager", "sdpa", OURS, GROWING)
CONTEXTS = (4096, 16384, 65536, 131072)
_PROBE = 1024
_LONGEST_SECONDS = 150.0
# Other programs of the machine keep this much.
_SPARE_BYTES = 2**30
_MIN_RATIO, _RATIO_FROM = 30.0, 16384
_MAX_LOGITS_ERROR = 0.01


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the process's exit status."""
    options = _parser().parse_args(arguments)
    try:
        import custom_pypto_transformers  # noqa: F401
    except ImportError as error:
        hint = "" if "custom_pypto_transformers:" in str(error) else "; see docs/transformers.md"
        print(f"transformers: {error}{hint}", file=sys.stderr)
        return 1
    version = importlib.metadata.version("transformers")
    run = Run(options.output, transformers=version, dtype=options.dtype)
    errors: dict[str, float] = {}
    columns = {
        **{way: time_of(way) for way in WAYS},
        **{f"sdpa/{way}": ratio_of("sdpa", way) for way in (OURS, GROWING)},
        "logits error": lambda row: number(errors.get(row.name), ".2%"),
    }
    run.begin("one layer: a token after so many cached ones", columns)
    for model in options.models:
        with ExitStack() as stack:
            workers = {way: stack.enter_context(Worker()) for way in WAYS}
            for way, worker in workers.items():
                worker.call(decoding.start, model, options.dtype, way, torch.get_num_threads())
            _time(run, model, workers, options, errors)
    run.end()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = make_parser("transformers", __doc__)
    parser.add_argument(
        "--models",
        nargs="+",
        choices=sorted(models.MODELS),
        default=list(models.DEFAULT),
        help="what to time (default: deepseek glm); tiny is for tests",
    )
    parser.add_argument(
        "--contexts",
        nargs="+",
        type=int,
        default=list(CONTEXTS),
        metavar="N",
        help=f"tokens, the new one included (default: {' '.join(map(str, CONTEXTS))})",
    )
    parser.add_argument(
        "--dtype",
        choices=models.DTYPES,
        default=models.DTYPES[0],
        help="float32 where the processor multiplies no bf16 (default: %(default)s)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    return parser


def _time(
    run: Run,
    model: str,
    workers: dict[str, Worker],
    options: argparse.Namespace,
    errors: dict[str, float],
) -> None:
    """Time a model at each context. An implementation is left out from where it costs too much."""
    probe = min(_PROBE, *options.contexts)
    known = {way: (probe, worker.call(decoding.begin, probe)) for way, worker in workers.items()}
    for context in sorted(options.contexts):
        firsts: dict[str, First] = {}
        for way, worker in workers.items():
            reason = refusal(*known[way], context, process_memory.available())
            if not reason:
                try:
                    firsts[way] = worker.call(decoding.begin, context)
                    known[way] = context, firsts[way]
                except BrokenProcessPool:
                    reason = "was ended by the system"
            if reason:
                print(f"{way} at {context}: {reason}", file=sys.stderr)
        workers = {way: workers[way] for way in firsts}
        calls = {way: Timed(partial(workers[way].call, decoding.step)) for way in firsts}
        # Each step adds a token to the cache.
        seconds = 0.5 if options.quick else 10.0
        times = time_interleaved(calls, seconds, warmups=1, least=2, most=50)
        row = Measured(models.MODELS[model].text, f"decode {context}", times)
        if "sdpa" in firsts:
            expected = torch.tensor(firsts["sdpa"].logits)
            distance = (torch.tensor(firsts[OURS].logits) - expected).norm()
            errors[row.name] = float(distance / expected.norm())
            run.add_goal(f"{row.name}, logits error", errors[row.name], most=_MAX_LOGITS_ERROR)
        run.add(row)
        if context >= _RATIO_FROM:
            for way in (OURS, GROWING):
                ratio = row.ratio("sdpa", way)
                run.add_goal(f"{row.name}, sdpa/{way}", ratio, least=_MIN_RATIO)


def refusal(context: int, first: First, longer: int, available: int) -> str:
    """Return why a step after more tokens must not run; empty if it may."""
    # transformers' time and memory grow with the context.
    factor = longer / context
    if factor * first.bytes > available - _SPARE_BYTES:
        return f"needs {factor * first.bytes / 2**30:.0f} GiB"
    if factor * first.seconds > _LONGEST_SECONDS:
        return f"takes {factor * first.seconds / 60:.0f} min"
    return ""


if __name__ == "__main__":
    sys.exit(main())
