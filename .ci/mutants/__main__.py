"""Breaks sources one at a time, and sees whether a test fails: ``python -m mutants WORK``.

WORK keeps the tree whose sources are broken, and a file of results for each commit: a run of the
same commit that was stopped goes on there. Only what is committed is tested.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random
from tempfile import TemporaryFile

from .mutant import Mutant
from .rooms import ROOMS, Room

ROOT = Path(__file__).resolve().parents[2]
CORE = Path("core/src")
_SLOWEST = 900.0
"""Seconds; a break may make tests wait for ever."""


class Run:
    """A tree with every distribution installed from it."""

    def __init__(self, work: Path, *, processes: int, is_thorough: bool) -> None:
        self._tree = work / "tree"
        self._commit = _git(ROOT, "rev-parse", "HEAD")
        self._results = work / f"{self._commit}.jsonl"
        self._processes = processes
        self._is_thorough = is_thorough
        # Tests that pass without a break.
        self._sound: set[str] = set()
        # What was built from broken sources.
        self._stale: set[str] = set()

    def prepare(self) -> None:
        """Make the tree, and install from it."""
        if not self._tree.exists():
            _git(ROOT, "clone", "--quiet", str(ROOT), str(self._tree))
        _git(self._tree, "fetch", "--quiet", "origin", self._commit)
        _git(self._tree, "reset", "--quiet", "--hard", self._commit)
        self._install(["contract", "builder", "core", "plugins/*", "integrations/*"])
        if self._has_type_error():
            raise SystemExit("without a break mypy finds an error")

    def check(self, room: Room, mutant: Mutant) -> tuple[str, str]:
        """Return what becomes of a mutant, and the first test that fails; mypy is the last.

        That is killed, survived, or stillborn if it does not build.
        """
        file = self._tree / mutant.file
        source = file.read_text(encoding="utf-8")
        folders = [
            each for each in mutant.file.parents if (self._tree / each / "pyproject.toml").exists()
        ]
        project = str(folders[0])
        builds = {each.format(project=project) for each in room.builds}
        nearest = [each.format(project=project) for each in room.tests]
        self._expect_sound(nearest)
        try:
            self._write(mutant.file, mutant.apply(source))
            self._stale |= builds
            if not self._install(self._stale):
                return "stillborn", ""
            self._stale = builds
            failed = self._first_failure(self._order(nearest, mutant))
            if not failed and self._is_thorough:
                failed = self._first_failure(["."])
            if not failed and file.suffix == ".py" and self._has_type_error():
                failed = "mypy"
            return ("killed", failed) if failed else ("survived", "")
        finally:
            self._write(mutant.file, source)

    def draw(self, room: Room, count: int, seed: int) -> Iterator[Mutant]:
        """Return mutants of a room until `count` of them were built."""
        mutants = list(room.mutants(self._tree))
        Random(f"{seed} {room.name}").shuffle(mutants)
        done = {result["key"]: result["outcome"] for result in self.results()}
        for mutant in mutants:
            outcome = done.get(_key(mutant)) or self._check_and_note(room, mutant)
            count -= outcome != "stillborn"
            yield mutant
            if count == 0:
                return

    def results(self) -> list[dict[str, str]]:
        """Return what is known of each mutant that was checked."""
        if not self._results.exists():
            return []
        return [json.loads(line) for line in self._results.read_text().splitlines()]

    def _check_and_note(self, room: Room, mutant: Mutant) -> str:
        text = mutant.describe((self._tree / mutant.file).read_text(encoding="utf-8"))
        outcome, test = self.check(room, mutant)
        result = {"room": room.name, "outcome": outcome, "test": test, "text": text}
        result["key"] = _key(mutant)
        with self._results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")
        print(f"{outcome:9}  {text}\n  {test}", flush=True)
        return outcome

    def _install(self, patterns: Iterable[str]) -> bool:
        folders = [each for pattern in patterns for each in sorted(self._tree.glob(pattern))]
        options = ["--quiet", "--no-build-isolation", "--no-deps"]
        return all(
            _run([sys.executable, "-m", "pip", "install", *options, str(folder)])[0] == 0
            for folder in folders
            if (folder / "pyproject.toml").exists()
        )

    def _expect_sound(self, tests: list[str]) -> None:
        """Check, once, that `tests` pass without a break."""
        new = [each for each in tests if not self._sound & {each, *map(str, Path(each).parents)}]
        if new:
            self._install(self._stale)
            self._stale = set()
            failed = self._first_failure(new)
            if failed:
                raise SystemExit(f"without a break there is a failure: {failed}")
            self._sound |= {*new}

    def _write(self, file: Path, text: str) -> None:
        """Write a source, and a header of core where builds of plugins read it.

        To install core would make all its headers new, and compile every plugin as a whole.
        """
        (self._tree / file).write_text(text, encoding="utf-8")
        if file.is_relative_to(CORE) and file.suffix == ".h":
            installed = Path(sysconfig.get_path("purelib"), file.relative_to(CORE))
            installed.write_text(text, encoding="utf-8")

    def _has_type_error(self) -> bool:
        return _run([sys.executable, "-m", "mypy"], self._tree)[0] != 0

    def _order(self, tests: list[str], mutant: Mutant) -> list[str]:
        """Return `tests`, led by the files that have the name of the broken module."""
        name = re.compile(rf"\b{mutant.file.stem}\b")
        counts = {
            str(file.relative_to(self._tree)): len(name.findall(file.read_text(encoding="utf-8")))
            for place in tests
            for file in (self._tree / place).rglob("test_*.py")
        }
        leading = sorted((file for file in counts if counts[file]), key=lambda file: -counts[file])
        return [*leading, *tests]

    def _first_failure(self, tests: list[str]) -> str:
        """Run `tests`; return the name of the first that fails, empty if none does."""
        options = ["-x", "-q", "--tb=no", "--numprocesses", str(self._processes)]
        options += ["--dist", "loadfile", "--no-loadscope-reorder", "-p", "no:cacheprovider"]
        status, output = _run([sys.executable, "-m", "pytest", *options, *tests], self._tree)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
        return "" if status == 0 else next(iter(failed), f"pytest ended with status {status}")


def _key(mutant: Mutant) -> str:
    return json.dumps([*map(str, asdict(mutant).values())])


def _run(command: list[str], folder: Path = ROOT) -> tuple[int | None, str]:
    """Return a command's status, None if it takes too long, and its output."""
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = process.wait(_SLOWEST)
        # Children that a break left behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        output.seek(0)
        return status, output.read()


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--count", type=int, help="of mutants (default: the sum of the rooms')")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", choices=[room.name for room in ROOMS])
    parser.add_argument("--processes", type=int, default=2, help="of pytest (default: %(default)s)")
    parser.add_argument(
        "--nearest", action="store_true", help="run no others than the nearest tests of a source"
    )
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    run = Run(
        options.work.resolve(),
        processes=options.processes,
        is_thorough=not options.nearest,
    )
    run.prepare()
    rooms = [room for room in ROOMS if room.name in (options.rooms or room.name)]
    total = sum(room.share for room in rooms)
    count = options.count or total
    for room in rooms:
        for _ in run.draw(room, max(1, count * room.share // total), options.seed):
            pass
    _print_table(run.results())


def _print_table(results: list[dict[str, str]]) -> None:
    counts = Counter((result["room"], result["outcome"]) for result in results)
    print(f"{'room':14}{'killed':>8}{'survived':>10}{'share':>8}")
    for room in dict.fromkeys(result["room"] for result in results):
        _print_row(room, counts[room, "killed"], counts[room, "survived"])
    outcomes = Counter(result["outcome"] for result in results)
    _print_row("all", outcomes["killed"], outcomes["survived"])


def _print_row(name: str, killed: int, survived: int) -> None:
    share = killed / (killed + survived) if killed + survived else 1.0
    print(f"{name:14}{killed:8}{survived:10}{share:8.0%}")


if __name__ == "__main__":
    main()
