"""Time every op on CPU against torch eager, torch.compile and the peak of the machine.

Run from the root of the repository with `tox -e wheels,bench`, or, where the wheels of core and the
ops are installed, with `python -m benchmarks.cpu`. README.md beside this file says how to read the
tables.
"""

from __future__ import annotations

import argparse
import gc
import sys
from functools import partial
from pathlib import Path

if not __package__:
    # Run by its path: the root of the repository is not where Python looks yet.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from benchmarks import fused_steps, long_contexts, lower_isa, machine, plot, report
from benchmarks.case import Planned
from benchmarks.cases import all_cases, fused, indexer
from benchmarks.measurement import Bench
from benchmarks.peak import Peaks
from benchmarks.report import Run
from benchmarks.selection import clocked_indexer
from benchmarks.timing import torch_threads


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the process's exit status."""
    options = _parser().parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    chosen = [
        case
        for case in all_cases()
        if (case.quick or not options.quick) and options.only in case.name
    ]
    if not chosen:
        print(f"cpu: no case's op and size contain {options.only!r}", file=sys.stderr)
        return 2
    isas = machine.isas()
    missing = sorted({case.op for case in chosen} - isas.keys())
    if missing:
        print(f"cpu: not installed: {', '.join(missing)}; see `custom-pypto list`", file=sys.stderr)
        return 1

    peaks = Peaks()
    if any(case.targets.selection is not None for case in chosen):
        clocked_indexer()  # compiled now, so that what the compiler prints is not in the table
    bench = Bench(peaks, isas, compiled=options.compile, quick=options.quick)
    used = sorted({str(isas[case.op]) for case in chosen})
    run = Run(machine.describe() | {"kernels": ", ".join(used)}, _peaks(peaks))
    about = report.describe_machine(run.machine)
    report.show([about, *report.peaks(run.peaks)])
    _time(bench, chosen, run, options.output)
    if not options.quick:
        _study(bench, options.only, run)
    report.write(options.output, run.to_json(), run.goals, partial(plot.draw, run.rows, about))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repetitions")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="cases whose op and size contain TEXT"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: torch's)")
    parser.add_argument(
        "--no-compile", dest="compile", action="store_false", help="leave torch.compile out"
    )
    report.add_output(parser, "cpu")
    return parser


def _peaks(peaks: Peaks) -> dict[int, dict[str, float]]:
    """Measure every peak, on one thread and on all."""
    measured = {}
    for threads in sorted({1, torch.get_num_threads()}):
        with torch_threads(threads):
            measured[threads] = peaks.measure()
    return measured


def _time(bench: Bench, chosen: list[Planned], run: Run, output: Path) -> None:
    print(report.HEADING)
    for planned in chosen:
        row = bench.measure(planned)
        run.rows.append(row)
        print(report.line(row), flush=True)
        # A run that is interrupted keeps what it measured.
        report.save(output, run.to_json(), run.goals)
        gc.collect()


def _study(bench: Bench, only: str, run: Run) -> None:
    """Measure the fused op's steps, the time per key, memory, and a lower instruction set."""
    threads = torch.get_num_threads()
    if only in fused.OP:
        run.fused_steps = fused_steps.measure(bench)
        print()
        report.show(report.fused_steps(run.fused_steps))
    if only in indexer.OP:
        run.time_per_key = long_contexts.time_per_key(bench)
        print()
        report.show(report.time_per_key(run.time_per_key))
        run.memory = long_contexts.memory(threads)
        if run.memory is None:
            print("memory: not measured, because /proc/self/clear_refs cannot be written here")
    if only in lower_isa.ISA:
        run.at_isa = lower_isa.measure(threads)
        print(f"\nwith CUSTOM_PYPTO_CPU_ISA={lower_isa.ISA}, and torch limited to it")
        print(report.HEADING)
        report.show(map(report.line, run.at_isa))


if __name__ == "__main__":
    sys.exit(main())
