"""The ninja build of one library."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from custom_pypto_contract import guarded

from .errors import BuildError


def find_ninja() -> str:
    """The path of ninja: on PATH, else where pip installs it for this interpreter.

    Raises:
        BuildError: it is not installed.
    """
    found = shutil.which("ninja") or shutil.which("ninja", path=sysconfig.get_path("scripts"))
    if found is None:
        raise BuildError("ninja was not found; install it with `pip install ninja`")
    return found


class NinjaFile:
    """A build.ninja for one library. Paths may be relative to the folder that ninja runs in."""

    def __init__(self, folder: Path, compile_command: Sequence[str]) -> None:
        """Begin the file ``folder / "build.ninja"``; sources go to `compile_command` one by one."""
        self._folder = folder
        self._objects: list[str] = []
        compiling = f"{_shell(compile_command)} $flags -MD -MF $out.d -c $in -o $out"
        self._lines = [
            "# Written by custom_pypto_build.",
            f"builddir = {_path(folder)}",
            "rule compile",
            f"  command = {compiling}",
            "  description = compile $in$for_isa",
            "  depfile = $out.d",
            "  deps = gcc",
        ]

    def compile(self, source: str, flags: Sequence[str], isa: str = "") -> None:
        """Add the source file `source` with its flags; once more for each `isa`."""
        target = f"{self._folder.as_posix()}/objects/{source}.{isa + '.' if isa else ''}o"
        self._objects.append(target)
        self._lines += [
            f"build {_path(target)}: compile {_path(source)}",
            f"  flags = {_shell(flags)}",
            *([f"  for_isa = $ for {isa}"] if isa else []),
        ]

    def link(self, library: str, before: Sequence[str], after: Sequence[str]) -> None:
        """Link all objects; `before` is the command up to its inputs, `after` what follows them."""
        inputs = " ".join(_path(target) for target in self._objects)
        self._lines += [
            "rule link",
            f"  command = {_shell(before)} -o $out $in {_shell(after)}",
            "  description = link $out",
            f"build {_path(library)}: link {inputs}",
            f"default {_path(library)}",
        ]

    def write(self) -> Path:
        """Write the file; gives its path."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / "build.ninja"
        path.write_text("\n".join(self._lines) + "\n", encoding="utf-8")
        return path


def run_ninja(file: Path, root: Path, *, is_captured: bool = False) -> None:
    """Build what `file` describes, in the folder `root`.

    Output goes to this process's own, or when `is_captured` into the text of the error. MAX_JOBS
    limits how many compilers run at a time.

    Raises:
        BuildError: ninja is not installed, MAX_JOBS is not a positive number, or a command fails.
    """
    command = [find_ninja(), "-f", str(file), *_jobs()]
    # Compilers write PWD into debug information, where it may name the folder by another path.
    environment = {**os.environ, "PWD": str(root)}
    sys.stdout.flush()
    status, output, errors = guarded.run(
        command, cwd=root, env=environment, is_captured=is_captured
    )
    if status == 0:
        return
    if is_captured:
        raise BuildError(f"compiling or linking failed:\n{output}{errors}")
    raise BuildError(
        "compiling or linking the plugin failed; the compiler's output is above, after the line"
        " that begins with FAILED"
    )


def _jobs() -> list[str]:
    jobs = os.environ.get("MAX_JOBS")
    if not jobs:
        return []
    if re.fullmatch(r"[1-9][0-9]*", jobs) is None:
        raise BuildError(f"MAX_JOBS must be a positive number, got {jobs!r}")
    return ["-j", jobs]


def _shell(words: Sequence[str]) -> str:
    return shlex.join(words).replace("$", "$$")


def _path(path: str | Path) -> str:
    return re.sub(r"([$ :])", r"$\1", Path(path).as_posix())
