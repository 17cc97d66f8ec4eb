"""Random hostile calls: kernel and fake agree, nothing crashes, refusals change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from custom_pypto_testing.fuzzing import Series, fuzz, report

if TYPE_CHECKING:
    from custom_pypto_testing.subject import Op


def check_fuzzed(op: Op, series: Series, record: Callable[[str, object], None]) -> None:
    """No call of the series is at fault; `record` gets the op's row of the table.

    Only on CPU: a process with an NPU cannot be forked.
    """
    if op.contract is None or op.device != "cpu":
        return
    tally = fuzz(op, series)
    record("fuzzed", tally.row(op.name))
    if tally.faults:
        raise AssertionError(report(op, tally))
