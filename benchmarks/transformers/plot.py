"""A run as a picture: time against context, and the parts of a decode step."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.plot import draw_times
from benchmarks.transformers.cell import GROWING, WAYS
from benchmarks.transformers.models import MODELS
from benchmarks.transformers.results import Results

_COLORS = ("tab:red", "tab:orange", "tab:blue", "tab:green")


def draw(results: Results, title: str, file: Path) -> None:
    """Write a picture with a row for each model to `file`; its suffix says in which format."""
    models = list(results.weight_bytes)
    figure = Figure(figsize=(13, 0.8 + 4.2 * len(models)), layout="constrained")
    rows = figure.subplots(len(models), 2, squeeze=False)
    for model, (times, parts) in zip(models, rows, strict=True):
        _times(times, results, model)
        _parts(parts, results, model)
    figure.suptitle(title)
    figure.savefig(file, dpi=110)


def _times(axes: Axes, results: Results, model: str) -> None:
    found: dict[str, dict[int, float]] = {way.name: {} for way in WAYS}
    for m in results.measured:
        if (m.model, m.cell.phase, m.cell.batch) == (model, "decode", 1) and m.seconds is not None:
            found[m.way.name][m.cell.context] = m.seconds
    draw_times(axes, found, _COLORS)
    axes.set_title(f"{MODELS[model].text}, one layer, {results.machine['dtype']}")


def _parts(axes: Axes, results: Results, model: str) -> None:
    found = results.parts(model, GROWING)
    names = [cell.name for cell in found]
    below = [0.0] * len(found)
    for part in next(iter(found.values()), {}):
        heights = [seconds[part] * 1e3 for seconds in found.values()]
        axes.bar(names, heights, bottom=below, label=part)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    floors = [results.floor(model, seconds) * 1e3 for seconds in found.values()]
    axes.plot(names, floors, "k_", markersize=60)
    axes.set(ylabel="ms of a decode step, with GrowingCache")
    axes.set_title("line: the floor, reading the projections' weights and our ops")
    if names:
        axes.legend()
    axes.grid(axis="y", alpha=0.3)
