"""The machine and the Python that runs here."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_cli.probes.probe import Probe
from custom_pypto_cli.probes.trial import Trial

OLDEST_PYTHON = (3, 10)

# The features by which CPU kernels are chosen, as Linux names them.
_TELLING_FEATURES = (
    *("avx2", "fma", "f16c", "avx_vnni"),
    *("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("asimd", "asimddp", "bf16", "i8mm"),
)


def probes(trial: Trial) -> Iterator[Probe]:
    """Look at Python, the platform and the processor."""
    del trial
    python = Probe("python", f"{platform.python_version()} ({sys.executable})")
    if sys.version_info[:2] < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        python = python.with_problem(
            f"Python {platform.python_version()} is older than {oldest}",
            f"make an environment with Python {oldest} or newer",
        )
    yield python
    yield Probe("platform", f"{sysconfig.get_platform()}, {' '.join(platform.libc_ver()).strip()}")
    yield Probe("processors", str(_usable_processors()))
    yield Probe("cpu features", ", ".join(cpu_features()) or "(not known)")


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return those processor features that kernels choose between; none when not on Linux."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in {"flags", "Features"}:
            found = set(value.split())
            return [feature for feature in _TELLING_FEATURES if feature in found]
    return []


def _usable_processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
