"""The environment variables by which a user chooses what core loads, and whether it keeps calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from custom_pypto_contract.variables import DISABLE, LOCKFILE, LOG, PLUGINS, RECORD, STRICT

STANDARD_ERROR = "1"
"""The value of `Environment.log` for standard error."""

CALLS = "calls.jsonl"
"""The file of the calls in a folder that `Environment.record` names."""

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True)
class Environment:
    """The values of the variables.

    `allow` is None when every plugin may load, and `lockfile` when there is none. `log` is the path
    of a file, `STANDARD_ERROR`, or '' where calls are not logged. `record` is a path, or ''.
    """

    allow: frozenset[str] | None = None
    disable: frozenset[str] = frozenset()
    strict: bool = False
    log: str = ""
    record: str = ""
    lockfile: str | None = None
    problems: tuple[str, ...] = ()
    """Values that could not be understood, each with what is allowed."""

    def reason_to_block(self, plugin: str) -> str | None:
        """Return the reason why the plugin called `plugin` must not load, or None."""
        if plugin in self.disable:
            return f"{DISABLE} names it; take it out of the variable to load it"
        if self.allow is None or plugin in self.allow:
            return None
        if not self.allow:
            return f"{PLUGINS} is set and empty, which loads no plugin; unset it to load all"
        return f"{PLUGINS} does not name it; add it to the variable, or unset that to load all"

    def warnings(self, plugins: Iterable[str]) -> tuple[str, ...]:
        """Return a text for each thing in the variables that has no effect.

        `plugins` are the names of the installed plugins.
        """
        known = sorted(set(plugins))
        installed = ", ".join(known) or "none"
        texts = [*self.problems]
        for variable, names in ((PLUGINS, self.allow or ()), (DISABLE, self.disable)):
            if unknown := sorted({*names} - {*known}):
                named = ", ".join(map(repr, unknown))
                texts.append(
                    f"{variable} names no installed plugin: {named}; installed plugins: {installed}"
                )
        return tuple(texts)


def read(process: Mapping[str, str] = os.environ) -> Environment:
    """Return what the variables of a process say; never raises, see `Environment.problems`."""
    strict = process.get(STRICT, "").strip().lower()
    unknown = f"{STRICT} is {strict!r}, which is taken for 1; set it to 1 or to 0"
    record = process.get(RECORD, "")
    allow = process.get(PLUGINS)
    log = process.get(LOG, "")
    if (switch := log.strip().lower()) in _ON | _OFF:
        log = STANDARD_ERROR if switch in _ON else ""
    return Environment(
        allow=None if allow is None else _names(allow),
        disable=_names(process.get(DISABLE, "")),
        strict=strict not in _OFF,
        log=log,
        record="" if record.strip().lower() in _OFF else record,
        lockfile=process.get(LOCKFILE),
        problems=() if strict in _ON | _OFF else (unknown,),
    )


def _names(value: str) -> frozenset[str]:
    return frozenset(name for part in value.split(",") if (name := part.strip()))
