"""Whether core can load a plugin that was just built; `check_built` runs it in a child."""

from __future__ import annotations

import re
from importlib import metadata

from custom_pypto_cli import records


def check(plugin: str, distribution: str) -> dict[str, str]:
    """Load `plugin` of `distribution`; return the object that `check_built` prints."""
    try:
        import torch  # noqa: F401
    except Exception as error:
        return {"skipped": f"torch cannot be imported: {error}"}
    key = (plugin, distribution)
    [loaded] = [each for each in records.load() if (each.name, each.distribution) == key]
    if loaded.status == "loaded":
        undeclared = records.find_undeclared()
        reasons = [
            f"it registers the op {op!r}, which ops.toml does not describe" for op in undeclared
        ]
        return {"refused": reasons[0]} if reasons else {}
    missing = list(filter(_is_missing, metadata.requires(distribution) or []))
    if missing and "No module named" in loaded.reason:
        return {"skipped": f"{loaded.reason}; not installed: {', '.join(missing)}"}
    return {"refused": loaded.reason}


def _is_missing(requirement: str) -> bool:
    name = re.match(r"[\w.-]+", requirement)
    try:
        metadata.distribution(name[0] if name else "")
    except metadata.PackageNotFoundError:
        return ";" not in requirement
    return False
