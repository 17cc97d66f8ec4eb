"""The CUSTOM_PYPTO_* variables that are set."""

from __future__ import annotations

import os
from collections.abc import Iterator

from custom_pypto_contract.errors import find_similar
from custom_pypto_contract.variables import KNOWN
from custom_pypto_discovery import candidates, environment, lock_file
from custom_pypto_discovery.host import this_host

from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check

PREFIX = "CUSTOM_PYPTO_"


def checks(context: DoctorContext) -> Iterator[Check]:
    """Check each variable that is set; runs nothing."""
    del context
    plugins = [plugin.name for plugin in candidates.find()]
    warnings = {text.partition(" ")[0]: text for text in environment.read().warnings(plugins)}
    # The simulator checks its own variables, and a plugin its own.
    foreign = tuple(f"{PREFIX}{owner}_" for owner in ["SIM", *map(str.upper, plugins)])
    names = sorted(name for name in os.environ if name.startswith(PREFIX))
    for name in names:
        # The value of any other variable may be a secret.
        check = Check(name, repr(os.environ[name]) if name in KNOWN else "set")
        if name in warnings:
            check = check.with_problem(warnings[name], f"correct {name}, or unset it")
        elif name == environment.LOCKFILE:
            lock = lock_file.read(os.environ[name], this_host().trusted_owners)
            check = check.with_problem(lock.problem, lock.advice) if lock.problem else check
        elif name not in KNOWN and not name.startswith(foreign):
            # Without the prefix, which would make any two names alike.
            known = {each.removeprefix(PREFIX): each for each in KNOWN}
            near = find_similar(name.removeprefix(PREFIX), known)
            hint = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(KNOWN)}"
            check = check.with_problem(f"custom_pypto does not read {name}", hint)
        yield check
    if not names:
        yield Check(f"{PREFIX}*", "none is set")
