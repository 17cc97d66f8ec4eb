"""The sections of ``custom-pypto doctor``: one module for each, with a function `checks`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from custom_pypto_cli import isolated_load, plugin_list
from custom_pypto_cli.subprocess_call import TIME_LIMIT, Outcome


@dataclass
class DoctorContext:
    """What the sections of one report share."""

    time_limit: float = TIME_LIMIT
    """Seconds that each process of its own may take."""

    @cached_property
    def loaded(self) -> tuple[Outcome, dict[str, Outcome]]:
        """How `plugin_list.load_all` went, in a process: see `isolated_load.load`."""
        return isolated_load.load(plugin_list.load_all, time_limit=self.time_limit)
