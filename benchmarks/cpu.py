"""Time every op on CPU against torch eager and torch.compile, and print a table.

Run from the root of the repository with `tox -e wheels,bench`, or, where the four wheels are
installed, with `python -m benchmarks.cpu`. README.md beside this file says how to read the table.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

if not __package__:
    # Run by its path: the root of the repository is not where Python looks yet.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import custom_pypto.core
import torch

from benchmarks import machine
from benchmarks.cases import Planned, all_cases
from benchmarks.eager import Baseline
from benchmarks.timing import interleaved


@dataclass(frozen=True)
class Row:
    """The medians of one case in seconds; None: not timed."""

    op: str
    size: str
    ours: float
    eager: float
    compiled: float | None

    @property
    def against_eager(self) -> float:
        """How many times longer torch eager takes."""
        return self.eager / self.ours

    @property
    def against_compiled(self) -> float | None:
        """How many times longer torch.compile takes."""
        return None if self.compiled is None else self.compiled / self.ours


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the process's exit status."""
    options = _parser().parse_args(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    provided = {op.name for op in custom_pypto.core.ops()}
    chosen = [
        case
        for case in all_cases()
        if (case.quick or not options.quick) and options.only in case.op
    ]
    if not chosen:
        print(f"cpu: no case's op contains {options.only!r}", file=sys.stderr)
        return 2
    missing = sorted({case.op for case in chosen} - provided)
    if missing:
        print(f"cpu: not installed: {', '.join(missing)}; see `custom-pypto list`", file=sys.stderr)
        return 1

    about = machine.describe()
    rows = []
    if not options.json:
        print(" · ".join(f"{name} {value}" for name, value in about.items()))
        print(_HEADING)
    for row in _measure(chosen, compiled=options.compile, quick=options.quick):
        rows.append(row)
        if not options.json:
            print(_line(row), flush=True)
    if options.json:
        results = [
            asdict(row)
            | {"against_eager": row.against_eager, "against_compiled": row.against_compiled}
            for row in rows
        ]
        print(json.dumps({"machine": about, "unit": "seconds", "results": results}, indent=2))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and repetitions")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--only", default="", metavar="TEXT", help="ops whose name contains TEXT")
    parser.add_argument("--threads", type=int, metavar="N", help="threads (default: torch's)")
    parser.add_argument(
        "--no-compile", dest="compile", action="store_false", help="leave torch.compile out"
    )
    return parser


def _measure(cases: list[Planned], *, compiled: bool, quick: bool) -> Iterator[Row]:
    eager, compiler = Baseline(), Baseline.compiled()
    budget, least = (0.5, 3) if quick else (3.0, 5)
    for planned in cases:
        case = planned.make()
        calls = {"ours": case.ours, "eager": case.baseline(eager)}
        if compiled:
            calls["compiled"] = case.baseline(compiler)
        with torch.inference_mode():
            times = interleaved(calls, budget=budget, least=least)
        yield Row(case.op, case.size, times["ours"], times["eager"], times.get("compiled"))
        del case, calls
        gc.collect()


_HEADING = (
    f"{'op':<28}{'size':<24}{'ours':>11}{'eager':>11}{'compile':>11}"
    f"{'eager/ours':>12}{'compile/ours':>14}"
)


def _line(row: Row) -> str:
    ratio = row.against_compiled
    return (
        f"{row.op:<28}{row.size:<24}{_duration(row.ours):>11}{_duration(row.eager):>11}"
        f"{_duration(row.compiled):>11}{row.against_eager:>11.2f}x"
        f"{'-' if ratio is None else f'{ratio:.2f}x':>14}"
    )


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
