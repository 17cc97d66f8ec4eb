"""The picture of losses against steps."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from examples.transformers_train.training import WINDOW, Curve

_COLORS = ("#8d99ae", "#1b2a41", "#c8553d")


def draw(curves: list[Curve], path: Path) -> None:
    """Write a PNG: above, the loss of the text; below, that of the indexers."""
    figure = Figure(figsize=(8, 6), dpi=130, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    for curve, color in zip(curves, _COLORS, strict=True):
        for axes, losses in ((above, curve.losses), (below, curve.indexer_losses)):
            smooth = _smooth(losses)
            steps = range(curve.first_step, curve.first_step + len(losses))
            axes.plot(steps, losses, color=color, alpha=0.2, linewidth=0.8)
            axes.plot(steps, smooth, color=color, label=curve.name)
    above.set(ylabel="loss, nats a byte")
    above.set_title("A tiny DeepSeek-V3.2 in transformers, trained on the ops", loc="left")
    above.legend()
    below.set(xlabel="step", ylabel="indexers' divergence")
    for axes in (above, below):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def _smooth(values: list[float]) -> list[float]:
    """The mean of each value and those before it, up to WINDOW."""
    windows = [values[max(0, end - WINDOW) : end] for end in range(1, len(values) + 1)]
    return [sum(window) / len(window) for window in windows]
