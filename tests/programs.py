"""Programs that tests run in the environment of this process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Done = subprocess.CompletedProcess[str]


def run_program(
    *command: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    status: int = 0,
) -> Done:
    """Run a program with more variables, which must end with this status; capture its output."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def run_python(*arguments: str | Path, **options: Any) -> Done:
    """Run Python; `options` go to `run_program`."""
    return run_program(sys.executable, *arguments, **options)


def pip_install(source: Path, site: Path, **variables: str) -> None:
    """Build a plugin and install it into the folder `site`, alone."""
    options = ("-q", "--no-deps", "--no-index", "--no-build-isolation", "--target", site)
    # The tests are of the host's code, which -O0 compiles in half the time.
    flags = f"{os.environ.get('CXXFLAGS', '')} -O0"
    run_python("-m", "pip", "install", *options, source, env={"CXXFLAGS": flags, **variables})
