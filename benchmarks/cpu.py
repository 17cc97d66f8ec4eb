"""Time every op on CPU against torch eager, torch.compile and the peak of the machine.

Run from the root of the repository with `tox -e wheels,bench`, or, where the wheels of core, the
ops and custom-pypto-testing are installed, with `python -m benchmarks.cpu`. README.md beside this
file says how to read the table.
"""

from __future__ import annotations

import argparse
import gc
import timeit
from collections.abc import Iterator, Mapping

import torch
from custom_pypto import core
from custom_pypto_testing.timing.interleaved import Timed, time_interleaved
from custom_pypto_testing.timing.measured import Measured, of_peak, ratio_of, spread, time_of
from custom_pypto_testing.timing.peaks import at_peak, find_peaks, timed

from benchmarks.case import Case, Planned
from benchmarks.cases import add, attention, fused, grouped_matmul, indexer, products
from benchmarks.eager import Baseline
from benchmarks.run import Run, add_output

_COLUMNS = {
    "ours": time_of("ours"),
    "spread": spread,
    "of peak": of_peak,
    **{f"{name}/ours": ratio_of(name) for name in ("eager", "bf16", "compiled", "1 thread")},
}
# In shorter calls the second thread takes as long to wake up as to work.
_WORTH_TWO_THREADS = 1e-3


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark."""
    options = _parser().parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    chosen = [
        case
        for case in all_cases()
        if (case.quick or not options.quick) and options.only in case.name
    ]
    isas = {op.name: core.cpu_isa(op.plugin) for op in core.ops()}
    kernels = ", ".join(sorted({str(isas[case.op]) for case in chosen}))
    title = "ours, and how many times longer the others take"
    run = Run(options.output, title, _COLUMNS, kernels=kernels)
    for planned in chosen:
        run.add(_measure(planned, isas, options))
        gc.collect()


def all_cases() -> Iterator[Planned]:
    """Yield every case, op by op."""
    for op in (add, products, grouped_matmul, indexer, attention, fused):
        yield from op.cases()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("benchmarks.cpu", description=__doc__)
    add_output(parser)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repetitions")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="cases whose op and size contain TEXT"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: torch's)")
    parser.add_argument(
        "--no-compile", dest="compile", action="store_false", help="leave torch.compile out"
    )
    return parser


def _measure(
    planned: Planned, isas: Mapping[str, str | None], options: argparse.Namespace
) -> Measured:
    """Make a case's data, the same in every run, time it, and forget the data."""
    torch.manual_seed(0)
    case = planned.make()
    peaks = find_peaks(case.work, isas[planned.op], case.dtype)
    with torch.inference_mode(planned.inference):
        calls = _calls(case, compiles=options.compile)
        # The peak is measured next to our op, which is compared with it.
        every = {"ours": calls["ours"], **timed(peaks), **calls}
        seconds, least = (0.5, 3) if options.quick else (3.0, 9)
        times = time_interleaved(every, seconds, least=least)
    own = {name: times[name] for name in calls}
    least_time = at_peak(case.work, peaks, times)
    return Measured(planned.op, planned.size, own, least_time, torch.get_num_threads())


def _calls(case: Case, *, compiles: bool) -> dict[str, Timed]:
    calls = {"ours": Timed(case.ours), "eager": Timed(case.baseline(Baseline()))}
    if case.has_bf16_scores:
        calls["bf16"] = Timed(case.baseline(Baseline.with_bf16_scores()))
    if case.in_bf16 is not None:
        calls["bf16"] = Timed(case.in_bf16)
    if compiles:
        calls["compiled"] = Timed(case.baseline(Baseline.compiled()))
    warm = timeit.repeat(case.ours, number=1, repeat=2)[1]
    if torch.get_num_threads() > 1 and warm > _WORTH_TWO_THREADS:
        calls["1 thread"] = Timed(case.ours, threads=1)
    return calls


if __name__ == "__main__":
    main()
