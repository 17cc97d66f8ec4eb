"""What was measured of a call, as a row of a table and as JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .interleaved import Quartiles


@dataclass(frozen=True)
class Measured:
    """The times of a call, and of others that were timed in the same rounds."""

    op: str
    sample: str
    """The name of the call."""
    times: Mapping[str, Quartiles]
    """``ours``, and each other one."""
    at_peak: float | None = None
    """The seconds of the same work at the machine's peak; None: unknown."""
    threads: int = 1
    arguments: str = ""
    flops: int | None = None
    bytes: int | None = None

    @property
    def name(self) -> str:
        """Op and call."""
        return f"{self.op} {self.sample}"

    @property
    def fraction(self) -> float | None:
        """The fraction of the peak that ours reaches."""
        return None if self.at_peak is None else self.at_peak / self.times["ours"][1]

    @property
    def spread(self) -> float:
        """How far the quartiles of ours are apart, as a share of the median."""
        low, middle, high = self.times["ours"]
        return (high - low) / middle

    def seconds(self, name: str) -> float | None:
        """Return the median of a call; None: not timed."""
        return self.times[name][1] if name in self.times else None

    def ratio(self, name: str) -> float | None:
        """Return the time of a call divided by the time of ours; None: not timed."""
        seconds = self.seconds(name)
        return seconds and seconds / self.times["ours"][1]


Columns = Mapping[str, Callable[[Measured], str]]


def table_heading(columns: Columns, of: str = "") -> str:
    """Return the first line of a table; `of` is what its last column names."""
    return _align(columns, columns, of)


def table_line(columns: Columns, measured: Measured) -> str:
    """Return the line of what was measured."""
    return _align(columns, (column(measured) for column in columns.values()), measured.name)


def _align(columns: Columns, cells: Iterable[str], last: str) -> str:
    aligned = (f"{cell:>{max(12, len(name))}}" for name, cell in zip(columns, cells, strict=True))
    return "  ".join([*aligned, last])


def time_of(name: str) -> Callable[[Measured], str]:
    """Return the column of a call's time."""
    return lambda measured: duration(measured.seconds(name))


def ratio_of(name: str) -> Callable[[Measured], str]:
    """Return the column of the time of a call divided by the time of ours."""
    return lambda measured: number(measured.ratio(name), ".2f", "x")


def spread(measured: Measured) -> str:
    """The column of how far times are apart."""
    return f"{measured.spread:.0%}"


def of_peak(measured: Measured) -> str:
    """The column of the fraction of the peak."""
    return number(measured.fraction, ".3f")


def number(value: float | None, form: str, unit: str = "") -> str:
    """Return a number as text; "-" for None."""
    return "-" if value is None else f"{value:{form}}{unit}"


def duration(seconds: float | None) -> str:
    """Return a time as text."""
    if seconds is None or seconds >= 1:
        return number(seconds, ".2f", " s")
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.1f} us"


def describe_machine() -> dict[str, str | int]:
    """Return the processor, its vector extension as torch sees it, threads and versions."""
    import torch

    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "threads": torch.get_num_threads(),
        "isa": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
