"""A run as a picture: time against context, and the parts of a decode step."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.transformers.cell import WAYS
from benchmarks.transformers.models import MODELS
from benchmarks.transformers.results import GROWING, Results

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
    for way, color in zip(WAYS, _COLORS, strict=True):
        found = {
            m.cell.context: m.seconds * 1e3
            for m in results.measured
            if (m.model, m.way, m.cell.phase, m.cell.batch) == (model, way, "decode", 1)
            and m.seconds is not None
        }
        axes.plot(list(found), list(found.values()), "o-", color=color, label=way.name)
        for context in list(found)[-1:]:
            # Longer contexts need too much memory or time.
            text = f"{found[context]:.3g} ms"
            axes.annotate(text, (context, found[context]), (4, 4), textcoords="offset points")
    contexts = sorted({m.cell.context for m in results.measured if m.cell.phase == "decode"})
    axes.set(xscale="log", yscale="log", xlabel="context", ylabel="ms for one token")
    axes.set_xticks(contexts, [f"{context / 1024:g}K" for context in contexts], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_title(f"{MODELS[model].text}, one layer, {results.machine['dtype']}")
    axes.legend()
    axes.grid(alpha=0.3)


def _parts(axes: Axes, results: Results, model: str) -> None:
    found = results.parts(model, GROWING)
    names = [cell.name for cell in found]
    below = [0.0] * len(found)
    for part in next(iter(found.values()), {}):
        heights = [seconds[part] * 1e3 for seconds in found.values()]
        axes.bar(names, heights, bottom=below, label=part)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.axhline(results.floor(model) * 1e3, color="black", linestyle=":")
    axes.set(ylabel="ms of a decode step, with GrowingCache")
    axes.set_title("dotted: reading the projections' weights at the memory's peak")
    if names:
        axes.legend()
    axes.grid(axis="y", alpha=0.3)
