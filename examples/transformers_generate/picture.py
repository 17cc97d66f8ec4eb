"""The picture of time per token against context."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from examples.transformers_generate.generation import IMPLEMENTATIONS, Generated

_COLORS = ("#c8553d", "#ee964b", "#1b2a41")


def draw(results: list[Generated], path: Path) -> None:
    """Write a PNG with a line for each implementation."""
    figure = Figure(figsize=(8, 5), dpi=130, layout="constrained")
    axes = figure.subplots()
    for implementation, color in zip(IMPLEMENTATIONS, _COLORS, strict=True):
        made = [one for one in results if one.implementation == implementation]
        contexts = [one.context for one in made]
        times = [one.seconds * 1e3 for one in made]
        axes.plot(contexts, times, "o-", color=color, label=implementation)
        text = f"{times[-1]:.3g} ms"
        axes.annotate(text, (contexts[-1], times[-1]), (5, -3), textcoords="offset points")
    contexts = sorted({one.context for one in results})
    axes.set(xscale="log", yscale="log", xlabel="context, tokens", ylabel="ms for one token")
    axes.set_xticks(contexts, [f"{context:,}" for context in contexts])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12)
    axes.set_title("A small DeepSeek-V3.2 in transformers, by attn_implementation", loc="left")
    axes.legend()
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
