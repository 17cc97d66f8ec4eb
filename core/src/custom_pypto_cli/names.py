"""What the name on a command line means: an op, a plugin or a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from custom_pypto_contract.errors import find_similar

from custom_pypto_cli import records

if TYPE_CHECKING:
    from custom_pypto.core import PluginRecord

_PREFIXES = ("torch.ops.", "custom_pypto.", "custom_pypto::")


def find(name: str, plugins: Sequence[PluginRecord]) -> list[PluginRecord]:
    """Return the plugins called ``name``, else those with an op called so, with that op alone."""
    called = [plugin for plugin in plugins if name in (plugin.name, plugin.distribution)]
    if called:
        return called
    bare = _strip_prefix(name)
    providers: list[PluginRecord] = []
    for plugin in plugins:
        ops = tuple(op for op in plugin.ops if bare in (op.name, op.name.partition(".")[0]))
        if ops:
            providers.append(replace(plugin, ops=ops))
    return providers


def find_ops(
    name: str, plugins: Sequence[PluginRecord]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return what a name means, for `commands.expect_loaded`, and its loaded ops with plugins."""
    found = find(name, plugins)
    loaded = [plugin for plugin in found if plugin.status == "loaded"]
    meant = {
        "plugins": list(map(records.as_json, found)),
        "unknown": "" if found else explain_unknown(name, plugins),
    }
    return meant, [(plugin.name, op.name) for plugin in loaded for op in plugin.ops]


def _strip_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.removesuffix(".default")


def explain_unknown(name: str, plugins: Sequence[PluginRecord]) -> str:
    """Return that nothing is called `name`, and what is."""
    known = {plugin.name for plugin in plugins}
    known |= {plugin.distribution for plugin in plugins}
    known |= {op.name for plugin in plugins for op in plugin.ops}
    near = find_similar(_strip_prefix(name), sorted(known - {""}), most=4, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    return (
        f"no installed op or plugin is called {name!r}; {hint}`custom-pypto list` shows what is"
        " installed; every op is installed as a wheel: `pip install custom-pypto-<name>`"
    )
