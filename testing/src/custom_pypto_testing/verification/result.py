"""How a check went."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

MACHINE = "machine"


class Verdict(Enum):
    """What a check says."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"
    NONE = "does not apply"
    """The op lacks what is checked, by its author's decision."""


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    subject: str
    """The op, `MACHINE`, or ``plugin <name>``."""
    check: str
    verdict: Verdict
    text: str
    """What was done; for a failure, the whole story."""
    seconds: float = 0.0
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def brief(self) -> str:
        """The first line of `text`, if that is long its beginning."""
        line = self.text.partition("\n")[0]
        return line if len(line) <= 200 else f"{line[:197]}..."

    @property
    def line(self) -> str:
        """The result in one line."""
        how = f"{self.verdict.value}, {self.seconds:.1f} s"
        return f"{self.subject}: {self.check}: {how}: {self.brief}"
