"""The CUSTOM_PYPTO_* variables that are set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from custom_pypto_contract.errors import find_similar
from custom_pypto_contract.variables import KNOWN
from custom_pypto_discovery import candidates, environment, lock_file
from custom_pypto_discovery.host import this_host
from custom_pypto_discovery.installed_plugin import InstalledPlugin

from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial

PREFIX = "CUSTOM_PYPTO_"
# custom-pypto-simulator checks its own variables.
FOREIGN_PREFIX = "CUSTOM_PYPTO_SIM_"


def probes(trial: Trial) -> Iterator[Probe]:
    """Check each variable that is set; runs nothing."""
    del trial
    installed = candidates.find()
    names_of_plugins = (plugin.name for plugin in installed)
    warnings = {
        text.partition(" ")[0]: text for text in environment.read().warnings(names_of_plugins)
    }
    names = sorted(name for name in os.environ if name.startswith(PREFIX))
    for name in names:
        is_known = name in KNOWN or any(_is_of(plugin, name) for plugin in installed)
        # The value of any other variable may be a secret.
        probe = Probe(name, repr(os.environ[name]) if is_known else "set")
        if name in warnings:
            probe = probe.with_problem(warnings[name], f"correct {name}, or unset it")
        elif name == environment.LOCKFILE:
            lock = lock_file.read(os.environ[name], this_host().trusted_owners)
            probe = probe.with_problem(lock.problem, lock.advice) if lock.problem else probe
        elif not is_known and not name.startswith(FOREIGN_PREFIX):
            # Without the prefix, which would make any two names alike.
            known = {each.removeprefix(PREFIX): each for each in KNOWN}
            near = find_similar(name.removeprefix(PREFIX), known)
            hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(KNOWN)}"
            probe = probe.with_problem(f"custom_pypto does not read {name}", hint)
        yield probe
    if not names:
        yield Probe(f"{PREFIX}*", "none is set")


def _is_of(plugin: InstalledPlugin, name: str) -> bool:
    """Whether the variable `name` is the plugin's own: named for it, and in its files."""
    if plugin.folder is None or not name.startswith(f"{PREFIX}{plugin.name.upper()}_"):
        return False
    files = (path for path in plugin.folder.rglob("*") if path.suffix in (".py", ".so"))
    whole_name = re.compile(rf"\b{re.escape(name)}\b".encode())
    return any(whole_name.search(path.read_bytes()) for path in files)
