"""Conditions on sizes that may be symbols."""

from __future__ import annotations

from typing import Any

import torch


def decide_statically(condition: Any) -> bool | None:
    """Return whether a condition holds, without a guard; None where symbols leave that open."""
    if not isinstance(condition, torch.SymBool):
        return bool(condition)
    # Slow: it imports sympy. Where there are symbols, sympy is there already.
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    if statically_known_true(condition):
        return True
    is_wrong = torch.sym_not(condition)  # type: ignore[no-untyped-call]
    return False if statically_known_true(is_wrong) else None


def decide_by_hints(condition: Any) -> bool:
    """Return whether a condition holds, with a guard; False where only data decide it."""
    if not isinstance(condition, torch.SymBool):
        return bool(condition)
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    return guard_or_false(condition)
