"""The tables that the example prints after decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from examples.sparse_decode.decode import Step


def timing_table(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of the table of time per step."""
    ours = [step.ours_seconds * 1e3 for step in steps]
    eager = [step.eager_seconds * 1e3 for step in steps]
    # The first step is a warm-up of both: code paths and buffers are touched first there.
    warm = slice(1, None) if len(steps) > 1 else slice(None)
    yield f"{'time per step':<24}{'median':>10}{'fastest':>10}{'slowest':>10}{'first':>10}"
    baseline = f"torch eager in {steps[0].eager_products}"
    for name, times in (("custom_pypto", ours), (baseline, eager)):
        rest = times[warm]
        columns = (median(rest), min(rest), max(rest), times[0])
        yield f"{name:<24}" + "".join(f"{value:>7.1f} ms" for value in columns)
    yield f"{'torch eager / ours':<24}{median(eager[warm]) / median(ours[warm]):>9.2f}x"


def closeness_table(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the lines of the table that compares both with the reference, in their worst step."""
    yield f"{'worst step against fp32':<24}{'elements close':>20}{'relative L2 error':>20}"
    for name, all_steps in (
        ("custom_pypto", [step.ours for step in steps]),
        ("torch eager", [step.eager for step in steps]),
    ):
        share = min(step.share for step in all_steps)
        error = max(step.relative_l2 for step in all_steps)
        yield f"{name:<24}{share:>20.3%}{error:>20.2e}"
