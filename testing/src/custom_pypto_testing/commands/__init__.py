"""The commands `bench`, `replay`, `samples` and `verify` of ``custom-pypto``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from custom_pypto_cli.commands import CommandError


def expect_loaded(found: Mapping[str, Any]) -> None:
    """Check what a name means: `plugins` are its records, or `unknown` says that there are none.

    Raises:
        CommandError: there are none, or one is not loaded.
    """
    if not found["plugins"]:
        raise CommandError(found["unknown"], status=2)
    for plugin in found["plugins"]:
        if plugin["status"] != "loaded":
            state = f"the plugin {plugin['name']!r} is {plugin['status']}"
            raise CommandError(f"{state}: {plugin['reason']}")
