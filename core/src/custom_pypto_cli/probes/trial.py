"""What the sections of the report share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from custom_pypto_cli import attempts, records
from custom_pypto_cli.child import TIME_LIMIT, Outcome


@dataclass
class Trial:
    """One examination of this installation."""

    time_limit: float = TIME_LIMIT
    """Seconds that each child may take."""

    @cached_property
    def loaded(self) -> tuple[Outcome, dict[str, Outcome]]:
        """How `records.load_all` went, in a child: see `attempts.load`."""
        return attempts.load(records.load_all, time_limit=self.time_limit)
