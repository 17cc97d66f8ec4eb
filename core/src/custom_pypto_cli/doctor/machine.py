"""The machine and the Python that runs here."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from custom_pypto_cli.doctor import DoctorContext
from custom_pypto_cli.report import Check

# The features by which CPU kernels are chosen, as Linux names them.
_TELLING_FEATURES = (
    *("avx2", "fma", "f16c", "avx_vnni"),
    *("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("asimd", "asimddp", "bf16", "i8mm"),
)


def checks(context: DoctorContext) -> Iterator[Check]:
    """Look at Python, the platform and the processor."""
    del context
    yield Check("python", f"{platform.python_version()} ({sys.executable})")
    yield Check("platform", f"{sysconfig.get_platform()}, {' '.join(platform.libc_ver()).strip()}")
    yield Check("processors", str(len(os.sched_getaffinity(0))))
    yield Check("cpu features", ", ".join(cpu_features()) or "(not known)")


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
