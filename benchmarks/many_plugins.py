"""What very many plugins cost, half of them broken: the import of core, its warnings, the commands.

``python -m benchmarks.many_plugins`` where core is installed; ``--help`` lists the options. The
plugins are those of core/tests/plugin_factory.py, with a library each. The times are those of the
processor, which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

ROOT = Path(__file__).parent.parent
if TYPE_CHECKING:
    from plugin_factory import Installed, Site

GOALS = {
    "import of core after torch, CPU s": 0.6,
    "its warnings, bytes": 4096.0,
    "custom-pypto list, CPU s": 1.5,
    "custom-pypto doctor, CPU s": 3.0,
}
_IMPORT = """
import time, torch
start = time.process_time()
import custom_pypto.core
print(time.process_time() - start)
"""


def _damages() -> dict[str, Callable[[Installed], object]]:
    """Return the ways in which plugins are broken, each by what is done to one."""

    def run(code: str) -> Callable[[Installed], object]:
        return lambda plugin: (plugin.package / "__init__.py").write_text(code)

    return {
        "no manifest": lambda plugin: plugin.manifest.unlink(),
        "manifest that is no JSON": lambda plugin: plugin.manifest.write_text("{"),
        "newer ABI": lambda plugin: plugin.forge(core_abi=[1, 999]),
        "other library": lambda plugin: plugin.library.write_bytes(b"\x7fELF"),
        "file that everybody may write": lambda plugin: plugin.manifest.chmod(0o666),
        "op that nobody provides": lambda plugin: plugin.forge(requires_ops=["no_such_op"]),
        "module that raises": run("raise ValueError('broken')"),
        "module that exits": run("raise SystemExit(3)"),
    }


def install(site: Site, number: int) -> None:
    """Install `number` plugins, each second one broken, in all ways in turn."""
    damages = list(_damages().values())
    for index in range(number):
        plugin = site.install(f"plugin_{index:04d}", "from custom_pypto_plugin import hookimpl\n")
        if index % 2:
            damages[index // 2 % len(damages)](plugin)


def measure(number: int, repetitions: int) -> dict[str, float]:
    """Return the medians, by the names of `GOALS`."""
    sys.path[:0] = [str(ROOT / "core" / "tests"), str(ROOT / "tests")]
    from plugin_factory import Site, compile_library

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "site")
        place.mkdir()
        install(Site(place, cast("Any", None), compile_library(Path(folder))), number)
        rounds = [_round(place) for _ in range(repetitions)]
    return {name: median(each[name] for each in rounds) for name in GOALS}


def _round(site: Path) -> dict[str, float]:
    seconds, warnings = _run(site, "-c", _IMPORT)
    times = [float(seconds), len(warnings)]
    for command in ("list", "doctor"):
        start = _time_of_children()
        _run(site, "-m", "custom_pypto_cli", command)
        times.append(_time_of_children() - start)
    return dict(zip(GOALS, times, strict=True))


def _time_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(site: Path, *arguments: str) -> tuple[bytes, bytes]:
    """Return what Python prints with `arguments`, and its standard error."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=site,
        capture_output=True,
        check=False,
    )
    return done.stdout, done.stderr


def main() -> None:
    """Print what was measured, beside the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugins", type=int, default=500, help="default: %(default)s")
    parser.add_argument("--repetitions", type=int, default=5, help="default: %(default)s")
    options = parser.parse_args()
    measured = measure(options.plugins, options.repetitions)
    for name, goal in GOALS.items():
        print(f"{name:32} {measured[name]:10.2f}  goal {goal:g}")


if __name__ == "__main__":
    main()
