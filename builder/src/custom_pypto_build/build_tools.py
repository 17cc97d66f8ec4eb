"""The tools that build a plugin from source, found as the build backend finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check
from custom_pypto_contract import guarded

from custom_pypto_build.compiler import core_include, find_compiler
from custom_pypto_build.errors import BuildError
from custom_pypto_build.installed import find_torch
from custom_pypto_build.ninja import find_ninja

_ONLY_FOR_BUILDING = "only building a plugin from source needs it"


def checks(context: DoctorContext) -> Iterator[Check]:
    """Look at compiler, ninja and headers."""

    with_version = partial(_with_version, time_limit=context.time_limit)
    tools: dict[str, Callable[[], object]] = {
        "C++ compiler": lambda: with_version(find_compiler().command),
        "ninja": lambda: with_version([find_ninja()]),
        "torch headers": lambda: find_torch().include,
        "core headers": core_include,
    }
    for name, find in tools.items():
        try:
            yield Check(name, str(find()))
        except BuildError as error:
            yield Check(name, "not found").with_note(str(error), _ONLY_FOR_BUILDING)


def _with_version(command: Sequence[str], time_limit: float) -> str:
    """Return a command, and the first line of what it says of its version."""
    status, output, errors = guarded.run([*command, "--version"], time_limit=time_limit)
    version = next(iter(output.splitlines()), "").strip()
    if status != 0:
        end = "it does not end" if status is None else f"exit status {status}"
        version = f"cannot be run: {errors.strip() or end}"
    return f"{' '.join(command)}: {version}"
