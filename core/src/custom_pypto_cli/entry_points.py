"""What installed distributions add to the command line, by entry points."""

from __future__ import annotations

from custom_pypto_discovery import distributions

COMMANDS = "custom_pypto.commands"
"""The group of commands: the name of each, and a module with the members of `Command`."""
DOCTOR = "custom_pypto.doctor"
"""The group of sections of ``doctor``: the title of each, and a module with a function `probes`."""


def find(group: str) -> dict[str, list[tuple[str, str]]]:
    """Return the entry points by name: of each a distribution and a module, sorted, each once."""
    found: dict[str, set[tuple[str, str]]] = {}
    for distribution in distributions.installed():
        for name, module in distributions.entry_points(distribution, group):
            found.setdefault(name, set()).add((distributions.name_of(distribution), module))
    return {name: sorted(found[name]) for name in sorted(found)}
