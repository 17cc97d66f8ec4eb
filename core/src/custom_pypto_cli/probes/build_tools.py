"""The tools that build a plugin from source, found as the build backend finds them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec

from custom_pypto_cli.probes.probe import Probe

_ONLY_FOR_BUILDING = "only building a plugin from source needs it"


def probes(time_limit: float) -> Iterator[Probe]:
    """Look at compiler, ninja and headers; a program that is run has ``time_limit`` seconds."""
    if find_spec("custom_pypto_build") is None:
        yield Probe("custom-pypto-build", "not installed").with_note(
            "the build backend is not installed",
            f"pip install custom-pypto-build; {_ONLY_FOR_BUILDING}",
        )
        return
    yield _compiler(time_limit)
    yield _ninja(time_limit)
    from custom_pypto_build.compiler import core_include
    from custom_pypto_build.torch_headers import find_torch

    yield _headers("torch headers", lambda: find_torch().include)
    yield _headers("core headers", core_include)


# These functions too import the builder, which core does not require.
def _compiler(time_limit: float) -> Probe:
    from custom_pypto_build.compiler import find_compiler
    from custom_pypto_build.errors import BuildError

    name = "C++ compiler"
    try:
        command = find_compiler().command
    except BuildError as error:
        return Probe(name, "not found").with_note(str(error), _ONLY_FOR_BUILDING)
    return Probe(name, f"{' '.join(command)}: {_first_line([*command, '--version'], time_limit)}")


def _ninja(time_limit: float) -> Probe:
    from custom_pypto_build.ninja import find_ninja

    path = find_ninja()
    if path is None:
        return Probe("ninja", "not found").with_note(
            "ninja was not found", f"pip install ninja; {_ONLY_FOR_BUILDING}"
        )
    return Probe("ninja", f"{path}: {_first_line([path, '--version'], time_limit)}")


def _headers(name: str, find: Callable[[], object]) -> Probe:
    from custom_pypto_build.errors import BuildError

    try:
        return Probe(name, str(find()))
    except BuildError as error:
        return Probe(name, "not found").with_note(str(error), _ONLY_FOR_BUILDING)


def _first_line(command: list[str], time_limit: float) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=time_limit,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"cannot be run: {error}"
    return next(iter(done.stdout.splitlines()), "").strip()
