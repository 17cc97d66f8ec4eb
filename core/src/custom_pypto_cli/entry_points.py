"""What installed distributions add to the command line, by entry points."""

from __future__ import annotations

from custom_pypto_discovery import distributions

COMMANDS = "custom_pypto.commands"
"""The group of commands: the name of each, and a module with the members of `Command`."""
DOCTOR = "custom_pypto.doctor"
"""The group of sections of ``doctor``: the title of each, and a module with a function `probes`."""


def find(group: str) -> dict[str, str]:
    """Return the modules by name, sorted; of two with one name, the alphabetically first."""
    found: dict[str, str] = {}
    for distribution in distributions.installed():
        for name, module in distributions.entry_points(distribution, group):
            found[name] = min(module, found.get(name, module))
    return dict(sorted(found.items()))
