"""Scratch environments: a real venv with torch and the test tools, and none of our packages.

The venv borrows torch and the other packages of the environment that runs the tests, through one
folder of links, so that making a venv takes no time and no download. That folder leaves out
custom_pypto and every plugin: a test installs those that it needs.
"""

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

PLUGIN_GROUP = "custom_pypto.plugins"
# Arguments of pytest: few calls, and the graphs of one sample of each op. They find a fault of a
# plugin. This repository's plugins are tested with more.
FEW_CALLS = (
    "--custom-pypto-fuzz=100",
    "-k",
    "not inductor and (drawn-0 or not (compiles or exports or opcheck or symbolic))",
)
_BUILD = "import sys, custom_pypto_build as backend; print(backend.build_wheel(sys.argv[1]))"


@dataclass(frozen=True)
class Scratch:
    """A venv in the folder `root`."""

    root: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.root / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where pip installs into it."""
        return next((self.root / "lib").glob("python3*/site-packages"))

    def install(self, *wheels: Path) -> None:
        """Install wheels by pip, without their dependencies; few of their modules are imported."""
        self._pip("install", "--no-compile", "--no-deps", "--no-index", *map(str, wheels))

    def uninstall(self, *distributions: str) -> None:
        """Uninstall distributions by pip."""
        self._pip("uninstall", "--yes", *distributions)

    def build_wheel(
        self, source: Path, folder: Path, environment: Mapping[str, str] | None = None
    ) -> Path:
        """Build the project in `source` by its backend in this environment; give the new wheel.

        pip would take as long again, and the compiler does not optimise, which takes most of its
        time.
        """
        variables = {"CXXFLAGS": "-O0", **(environment or {})}
        done = self.run("-I", "-c", _BUILD, folder, cwd=source, environment=variables)
        return folder / done.stdout.splitlines()[-1]

    def run(
        self,
        *arguments: str | Path,
        program: str = "python",
        check: bool = True,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the venv, in the venv's folder unless `cwd` is given.

        With `check`, a status other than 0 raises AssertionError with the program's output.
        """
        command = [self.root / "bin" / program, *arguments]
        return run_command(command, cwd or self.root, environment, check=check)

    def custom_pypto(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run the venv's ``custom-pypto``; `options` go to `run`."""
        return self.run(*arguments, program="custom-pypto", **options)

    def expect_passes(self, *pytest: str | Path, cwd: Path | None = None) -> str:
        """Run tests by ``python -m`` with these arguments; all must pass. Return the output."""
        done = self.run("-m", *pytest, cwd=cwd)
        summary = done.stdout.splitlines()[-1]
        assert re.fullmatch(r"\d+ passed(, \d+ deselected)? in .*", summary), done.stdout
        return done.stdout

    def _pip(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "-q", *arguments]
        run_command(command, self.root)


def run_command(
    command: Iterable[str | Path],
    cwd: Path,
    variables: Mapping[str, str] | None = None,
    *,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a program without variables of Python, pip and ours but `variables`, and capture it."""
    ours = ("PYTHON", "CUSTOM_PYPTO_", "PIP_", "COVERAGE_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**inherited, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode:
        shown = " ".join(str(part) for part in command)
        raise AssertionError(
            f"`{shown}` ended with status {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
    return done


def create(root: Path, lent: Path) -> Scratch:
    """Make a venv in `root` which sees the packages in the folder `lent`."""
    venv.create(root, with_pip=False, symlinks=True)
    scratch = Scratch(root)
    (scratch.site_packages / "lent.pth").write_text(f"{lent}\n", encoding="utf-8")
    return scratch


def lend(folder: Path) -> Path:
    """Fill `folder` with links to what is installed here except custom_pypto and its plugins."""
    folder.mkdir(parents=True)
    ours: set[str] = set()
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"] or ""
        groups = {entry_point.group for entry_point in distribution.entry_points}
        if PLUGIN_GROUP in groups or name.lower().replace("_", "-").startswith("custom-pypto"):
            ours |= {file.parts[0] for file in distribution.files or ()} - {".."}
    places = [Path(entry) for entry in sys.path]
    for place in (each for each in places if each.name in {"site-packages", "dist-packages"}):
        for entry in place.iterdir():
            kept = entry.name not in ours and not entry.name.startswith("__")
            if kept and entry.suffix != ".pth" and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    return folder
