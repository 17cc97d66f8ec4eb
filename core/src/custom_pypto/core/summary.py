"""One text about very many plugins that are not loaded."""

from __future__ import annotations

from collections.abc import Sequence

from custom_pypto_discovery.printable import escape

MOST_WARNINGS = 10
"""As many plugins have a warning of their own; more share one."""

_MOST_BYTES = 3500
_MOST_CHARACTERS = 200


def summarize(texts: Sequence[str]) -> str:
    """Return the beginnings of texts, each about one plugin, as far as they fit into 4 KB."""
    lines = [f"{len(texts)} of the installed plugins are not loaded:"]
    room = _MOST_BYTES
    for number, text in enumerate(texts):
        line = escape(text)
        if len(line) > _MOST_CHARACTERS:
            line = f"{line[:_MOST_CHARACTERS]}..."
        room -= len(line.encode()) + 1
        if room < 0:
            lines.append(f"and {len(texts) - number} more")
            break
        lines.append(line)
    return "\n".join([*lines, "`custom-pypto list` shows each with its whole reason"])
