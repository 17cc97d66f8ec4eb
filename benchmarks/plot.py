"""Pictures: the rows of a run, and times against the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks.row import Row


def draw(rows: list[Row], title: str, file: Path) -> None:
    """Write a picture of the rows to `file`; its suffix says in which format.

    It shows the fraction of the peak, and how many times longer PyTorch takes.
    """
    names = [row.name for row in rows][::-1]
    places = range(len(rows))
    figure = Figure(figsize=(13, 1.5 + 0.32 * len(rows)), layout="constrained")
    fractions, ratios = figure.subplots(1, 2, sharey=True)
    fractions.barh(places, [row.fraction or 0 for row in rows][::-1], color="tab:blue")
    fractions.set(xlim=(0, 1), xlabel="fraction of the peak", yticks=places, yticklabels=names)
    for goal, place in zip([row.targets.fraction for row in rows][::-1], places, strict=True):
        if goal is not None:
            fractions.plot([goal, goal], [place - 0.45, place + 0.45], color="black")
    height = 0.4
    for offset, name, label, color in (
        (height / 2, "eager", "torch eager", "tab:orange"),
        (-height / 2, "compiled", "torch.compile", "tab:green"),
    ):
        values = [row.ratio(name) or 0 for row in rows][::-1]
        ratios.barh([p + offset for p in places], values, height, label=label, color=color)
    ratios.axvline(1, color="black")
    ratios.set(xscale="log", xlabel="times as long as ours")
    ratios.legend()
    for axes in (fractions, ratios):
        axes.grid(axis="x", alpha=0.3)
    figure.suptitle(title)
    figure.savefig(file, dpi=110)


def draw_times(axes: Axes, times: Mapping[str, Mapping[int, float]], colors: Sequence[str]) -> None:
    """Draw a line for each name: the seconds for one token by the context, in ms."""
    for (name, by_context), color in zip(times.items(), colors, strict=True):
        contexts, values = list(by_context), [seconds * 1e3 for seconds in by_context.values()]
        axes.plot(contexts, values, "o-", color=color, label=name)
        if values:
            end = contexts[-1], values[-1]
            axes.annotate(f"{values[-1]:.3g} ms", end, (5, -3), textcoords="offset points")
    contexts = sorted({context for by_context in times.values() for context in by_context})
    axes.set(xscale="log", yscale="log", xlabel="context, tokens", ylabel="ms for one token")
    axes.set_xticks(contexts, [f"{context:,}" for context in contexts])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12)
    axes.legend()
    axes.grid(alpha=0.3)
