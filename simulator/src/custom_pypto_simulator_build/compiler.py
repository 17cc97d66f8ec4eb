"""Compiles and links; results are cached under a hash of everything they were made from."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from custom_pypto_build.compiler import find_compiler
from custom_pypto_build.errors import BuildError

from .cache import cache_folder, locked, replacing

FLAGS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-DFUNC_VISIBILITY",
    "-Wall",
    "-Wextra",
    "-Werror",
)


@dataclass(frozen=True)
class Library:
    """One shared library to be built.

    ``system_includes`` are folders whose contents ``versions`` pin; ``includes`` are hashed file by
    file. ``needed`` are libraries that it is linked against, by path. ``precompiled`` is a header
    that is parsed once for all sources that are compiled together.
    """

    soname: str
    sources: tuple[Path, ...]
    includes: tuple[Path, ...] = ()
    system_includes: tuple[Path, ...] = ()
    versions: tuple[str, ...] = ()
    needed: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ()
    precompiled: Path | None = None


def build(libraries: Sequence[Library]) -> list[Path]:
    """The path of each library, built now or found in the cache.

    A library is at ``<cache>/libraries/<hash>/<soname>``. Raises BuildError.
    """
    command = find_compiler().command
    folder = cache_folder()
    plans = [_Plan.of(library, command, folder) for library in libraries]
    if any(not plan.path.exists() for plan in plans):
        with locked(folder):
            missing = [plan for plan in plans if not plan.path.exists()]
            for plan in missing:
                with _precompiled(plan) as options:
                    _compile_all([unit for unit in plan.units if not unit.object.exists()], options)
            for plan in missing:
                plan.link()
    return [plan.path for plan in plans]


@dataclass(frozen=True)
class _Unit:
    command: tuple[str, ...]
    source: Path
    object: Path

    def compile(self, options: Sequence[str]) -> None:
        with replacing(self.object) as target:
            command = [*self.command, *options, "-c", str(self.source), "-o", str(target)]
            _run(command, self.source.name)


@dataclass(frozen=True)
class _Plan:
    library: Library
    command: tuple[str, ...]
    units: tuple[_Unit, ...]
    path: Path

    @classmethod
    def of(cls, library: Library, command: Sequence[str], folder: Path) -> _Plan:
        compile_command = (
            *command,
            *FLAGS,
            *library.flags,
            *(f"-I{include}" for include in library.includes),
            *(f"-isystem{include}" for include in library.system_includes),
        )
        common = digest(
            [
                _identity(command[0]),
                *compile_command,
                *library.versions,
                *(text for include in library.includes for text in headers(include)),
            ]
        )
        units = tuple(
            _Unit(
                compile_command,
                source,
                folder / "objects" / f"{digest([common, str(source), _text(source)])}.o",
            )
            for source in library.sources
        )
        link_command = (
            *command,
            "-shared",
            "-Wl,-z,now",
            f"-Wl,-soname,{library.soname}",
            *(str(unit.object) for unit in units),
            *(str(path) for path in library.needed),
        )
        path = folder / "libraries" / digest(link_command) / library.soname
        return cls(library, link_command, units, path)

    def link(self) -> None:
        with replacing(self.path) as target:
            _run([*self.command, "-o", str(target)], self.library.soname)


@contextlib.contextmanager
def _precompiled(plan: _Plan) -> Iterator[list[str]]:
    """The options for a plan's precompiled header, which is temporary."""
    header = plan.library.precompiled
    if header is None or all(unit.object.exists() for unit in plan.units):
        yield []
        return
    with tempfile.TemporaryDirectory() as folder:
        stand_in = Path(folder) / header.name
        stand_in.write_text(f'#include "{header}"\n', encoding="utf-8")
        compiled = f"{stand_in}.gch"
        command = [*plan.units[0].command, "-x", "c++-header", str(stand_in), "-o", compiled]
        _run(command, header.name)
        yield ["-include", str(stand_in)]


def _compile_all(units: Sequence[_Unit], options: Sequence[str]) -> None:
    jobs = int(os.environ.get("MAX_JOBS") or 0) or min(2, os.cpu_count() or 1)
    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(unit.compile, options) for unit in units]:
            done.result()


def _run(command: Sequence[str], what: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise BuildError(f"{what} does not build:\n{shlex.join(command)}\n{result.stderr}")


def digest(texts: Iterable[str]) -> str:
    """A short hash of `texts`."""
    hashed = hashlib.sha256()
    for text in texts:
        hashed.update(text.encode())
        hashed.update(b"\0")
    return hashed.hexdigest()[:24]


def _identity(program: str) -> str:
    path = Path(shutil.which(program) or program).resolve()
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BuildError(f"cannot read {path}: {error.strerror}") from error


def headers(folder: Path) -> list[str]:
    """The texts of the C++ headers below `folder`."""
    return [_text(path) for path in sorted(folder.rglob("*.h"))]
