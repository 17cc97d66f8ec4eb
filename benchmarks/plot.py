"""A run as a picture: the fraction of the peak, and how many times longer PyTorch takes."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.row import Row


def draw(rows: list[Row], title: str, file: Path) -> None:
    """Write a picture of the rows to `file`; its suffix says in which format."""
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
    for offset, label, color, values in (
        (height / 2, "torch eager", "tab:orange", [row.against_eager for row in rows]),
        (-height / 2, "torch.compile", "tab:green", [row.against_compiled or 0 for row in rows]),
    ):
        ratios.barh([p + offset for p in places], values[::-1], height, label=label, color=color)
    ratios.axvline(1, color="black")
    ratios.set(xscale="log", xlabel="times as long as ours")
    ratios.legend()
    for axes in (fractions, ratios):
        axes.grid(axis="x", alpha=0.3)
    figure.suptitle(title)
    figure.savefig(file, dpi=110)
