"""Compiles and links; results are cached under a hash of everything they were made from."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
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
    file. ``needed`` are libraries that it is linked against: by path, or one that is built before.
    ``precompiled`` is a header that is parsed once for all sources.
    """

    soname: str
    sources: tuple[Path, ...]
    includes: tuple[Path, ...] = ()
    system_includes: tuple[Path, ...] = ()
    versions: tuple[str, ...] = ()
    needed: tuple[Path | Library, ...] = ()
    flags: tuple[str, ...] = ()
    precompiled: Path | None = None


def build(libraries: Sequence[Library]) -> list[Path]:
    """The path of each library, built now or found in the cache.

    A library is at ``<cache>/libraries/<hash>/<soname>``. Raises BuildError.
    """
    command = find_compiler().command
    folder = cache_folder()
    plans: dict[Library, _Plan] = {}
    for library in libraries:
        paths = {each: plan.path for each, plan in plans.items()}
        plans[library] = _Plan.of(library, command, folder, paths)
    if any(not plan.path.exists() for plan in plans.values()):
        with locked(folder):
            missing = [plan for plan in plans.values() if not plan.path.exists()]
            _compile_all(missing)
            for plan in missing:
                plan.link()
    return [plan.path for plan in plans.values()]


@dataclass(frozen=True)
class _Unit:
    command: tuple[str, ...]
    source: Path
    object: Path

    def compile(self, precompiled: Future[list[str]]) -> None:
        with replacing(self.object) as target:
            options = precompiled.result()
            command = [*self.command, *options, "-c", str(self.source), "-o", str(target)]
            _run(command, self.source.name)


@dataclass(frozen=True)
class _Plan:
    library: Library
    command: tuple[str, ...]
    units: tuple[_Unit, ...]
    path: Path

    @classmethod
    def of(
        cls,
        library: Library,
        command: Sequence[str],
        folder: Path,
        paths: Mapping[Library, Path],
    ) -> _Plan:
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
            *(str(each if isinstance(each, Path) else paths[each]) for each in library.needed),
        )
        path = folder / "libraries" / digest(link_command) / library.soname
        return cls(library, link_command, units, path)

    def missing_units(self) -> list[_Unit]:
        return [unit for unit in self.units if not unit.object.exists()]

    def precompile(self, folder: Path) -> list[str]:
        """The compiler's options for the precompiled header, which is written below `folder`."""
        header = self.library.precompiled
        if header is None or not self.missing_units():
            return []
        stand_in = folder / self.library.soname / header.name
        stand_in.parent.mkdir()
        stand_in.write_text(f'#include "{header}"\n', encoding="utf-8")
        compiled = f"{stand_in}.gch"
        command = [*self.units[0].command, "-x", "c++-header", str(stand_in), "-o", compiled]
        _run(command, header.name)
        return ["-include", str(stand_in)]

    def link(self) -> None:
        with replacing(self.path) as target:
            _run([*self.command, "-o", str(target)], self.library.soname)


def _compile_all(plans: Sequence[_Plan]) -> None:
    """Compile what is missing; precompiled headers, which take longest, beside other sources."""
    jobs = int(os.environ.get("MAX_JOBS") or 0) or min(2, os.cpu_count() or 1)
    # Threads begin what is submitted in its order: none waits for what has not begun.
    by_header = sorted(plans, key=lambda plan: plan.library.precompiled is None)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        headers_of = [pool.submit(plan.precompile, Path(folder)) for plan in by_header]
        compiled = [
            pool.submit(unit.compile, header)
            for plan, header in reversed(list(zip(by_header, headers_of, strict=True)))
            for unit in plan.missing_units()
        ]
        for done in compiled:
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
