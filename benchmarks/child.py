"""Runs a module of the benchmarks in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def run(module: str, *arguments: object, **variables: str) -> Any:
    """Return the JSON in the last line that a module prints.

    `arguments` are those of its command line; `variables` are added to the environment.
    """
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])
