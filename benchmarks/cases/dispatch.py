"""Cases of small calls of ops with a derivative, which time the dispatch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.case import Case, Planned, Targets

# What a call may cost more where autograd is on and no tensor requires grad.
AUTOGRAD = 3e-6


def dispatch_cases(
    op: str, size: str, make: Callable[[], Case], over_no_op: float
) -> Iterator[Planned]:
    """Yield a case in inference mode, `over_no_op` seconds above a no-op, and with autograd on."""
    targets = Targets(over_no_op=over_no_op)
    yield Planned(op, size, make, quick=True, targets=targets)
    targets = Targets(over_no_op=over_no_op + AUTOGRAD)
    yield Planned(op, f"{size}, autograd on", make, quick=True, targets=targets, inference=False)
