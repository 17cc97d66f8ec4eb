"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    text: str
    """What was done, in one line."""
    problem: str = ""
    """What is wrong; empty if nothing is."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """What was measured, as JSON."""
    applies: bool = True
    """False if the op lacks what the check needs, by its author's decision; `text` names it."""
