"""Pictures of times. matplotlib is imported when there is one to draw."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from .measured import Measured

_MARKERS = "os^Dv<>"


def find_fault(path: Path) -> str:
    """Return why no picture can be written to `path`, and what to do; empty if one can be."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return "--plot needs matplotlib; run `pip install matplotlib`"
    kinds = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix[1:] not in kinds:
        return f"--plot: {str(path)!r} must end in one of .{', .'.join(kinds)}"
    return ""


def draw(path: Path, measured: Sequence[Measured]) -> None:
    """Draw a row for each call: quartiles of its times, on a logarithmic axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.2 + 0.35 * len(measured)), layout="constrained")
    axes = figure.add_subplot()
    names = dict.fromkeys(name for each in measured for name in each.times)
    for number, (name, marker) in enumerate(
        zip((*names, "at peak"), cycle(_MARKERS), strict=False)
    ):
        # Below one another in their row.
        offset = 0.15 * number
        rows = {row + offset: _quartiles(each, name) for row, each in enumerate(measured)}
        rows = {row: times for row, times in rows.items() if times}
        if rows:
            low, middle, high = zip(*rows.values(), strict=True)
            axes.hlines(list(rows), low, high, colors=f"C{number}")
            axes.plot(middle, list(rows), marker, color=f"C{number}", label=name)
    axes.set_yticks(range(len(measured)), [each.name for each in measured])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("time of a call in microseconds: median and quartiles")
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    figure.savefig(path)


def _quartiles(measured: Measured, name: str) -> list[float]:
    """Return them in microseconds; none if that was not measured."""
    peak = measured.at_peak
    times = [peak] * 3 if name == "at peak" and peak else measured.times.get(name, [])
    return [each * 1e6 for each in times]
