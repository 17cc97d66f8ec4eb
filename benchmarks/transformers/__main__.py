"""Time DeepSeek-V3.2 and GLM-5 in transformers: its own attention against ours.

Run from the root of the repository with `tox -e wheels,transformers-bench`, or, where the wheels,
transformers and tqdm are installed, with `python -m benchmarks.transformers`. README.md in the
folder above says how to read the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import pickle
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import torch
from tqdm import tqdm

from benchmarks import machine, report
from benchmarks.peak import READING, Peaks
from benchmarks.transformers import models, plot, tables
from benchmarks.transformers.cell import (
    CONTEXTS,
    PROMPT,
    SHORT_PROMPT,
    WAYS,
    Cell,
    Job,
    Measured,
    cells,
)
from benchmarks.transformers.goals import goals
from benchmarks.transformers.results import Results

QUICK_CONTEXTS = CONTEXTS[:2]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the process's exit status."""
    options = _parser().parse_args(arguments)
    try:
        import custom_pypto_transformers  # noqa: F401
    except ImportError as error:
        hint = "" if "custom_pypto_transformers:" in str(error) else "; see docs/transformers.md"
        print(f"transformers: {error}{hint}", file=sys.stderr)
        return 1
    contexts = options.contexts or list(QUICK_CONTEXTS if options.quick else CONTEXTS)
    # No prompt is longer than the longest context.
    prompts = [length for length in (SHORT_PROMPT, PROMPT) if length <= max(contexts)]
    planned = cells(contexts, prompts[: 1 if options.quick else None], with_batch=not options.quick)
    version = importlib.metadata.version("transformers")
    details = machine.describe() | {"transformers": version, "dtype": options.dtype}
    results = Results(details, Peaks().reading().rate())
    about = report.describe_machine(details)
    report.show([about, *report.peaks({torch.get_num_threads(): {READING: results.reading}})])
    try:
        _measure(results, options, planned)
    except subprocess.CalledProcessError:
        print("transformers: the worker failed; see its message above", file=sys.stderr)
        return 1
    for model in results.weight_bytes:
        print()
        report.show(tables.cells(results, model))
        print()
        report.show(tables.parts(results, model))
    found = list(goals(results))
    report.write(options.output, results.to_json(), found, partial(plot.draw, results, about))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="transformers", description=(__doc__ or "").split("\n")[0]
    )
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
        metavar="N",
        help=f"tokens in the cache (default: {' '.join(map(str, CONTEXTS))})",
    )
    parser.add_argument(
        "--dtype",
        choices=models.DTYPES,
        default=models.DTYPES[0],
        help="float32 where the processor multiplies no bf16 (default: %(default)s)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="shorter contexts, no batches, fewer repetitions"
    )
    report.add_output(parser, "transformers")
    return parser


def _measure(results: Results, options: argparse.Namespace, planned: list[Cell]) -> None:
    """Time every cell, with one worker at a time."""
    total = len(options.models) * len(WAYS) * len(planned)
    with tqdm(total=total, unit="cell", dynamic_ncols=True) as progress:
        for model in options.models:
            results.weight_bytes[model] = models.weight_bytes(model, options.dtype)
            for way in WAYS:
                progress.set_description(f"{models.MODELS[model].text}, {way.name}")
                job = Job(
                    model, way, planned, options.dtype, options.quick, torch.get_num_threads()
                )
                for measured in run_worker(job):
                    results.measured.append(measured)
                    progress.set_postfix_str(measured.cell.name)
                    progress.update()


def run_worker(job: Job) -> Iterator[Measured]:
    """Yield what a worker measures; cells that a signal ended it before are marked as left out.

    Raises CalledProcessError when the worker itself fails; it has printed why.
    """
    command = [sys.executable, "-m", "benchmarks.transformers.worker", pickle.dumps(job).hex()]
    left = list(job.cells)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        with contextlib.suppress(EOFError):
            while True:
                yield pickle.load(process.stdout)
                del left[0]
    if process.returncode > 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    for cell in left:
        yield Measured(job.model, job.way, cell, left_out=f"signal {-process.returncode}")


if __name__ == "__main__":
    sys.exit(main())
