"""The picture of which positions the indexer chose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, MaxNLocator
from torch import Tensor

from examples.sparse_decode.decode import Step
from examples.sparse_decode.sizes import Sizes
from examples.text import Text

COLUMNS = 512
"""Most columns of a panel; a column of a long context covers several positions."""

NEAR = 128
"""How many of the last positions the right-hand panels show one by one."""

INK = "#1b2a41"
PALE = "#5c677d"
ABSENT = "#e9ecef"
SHADES = LinearSegmentedColormap.from_list(
    "chosen", ("#fbfaf5", "#f9d99a", "#ee964b", "#c8553d", "#7a1f3d", "#2b0b30")
).with_extremes(bad=ABSENT)
SCALE = PowerNorm(0.4, vmin=0, vmax=100)


def draw(steps: Sequence[Step], sizes: Sizes, text: Text, path: Path) -> None:
    """Write a PNG with a row per sequence: its whole context, and the end of it enlarged."""
    with matplotlib.rc_context():
        matplotlib.rc("font", family="DejaVu Sans", size=9)
        matplotlib.rc("text", color=INK)
        matplotlib.rc("axes", edgecolor=PALE, labelcolor=INK, linewidth=0.6)
        matplotlib.rc("xtick", color=PALE)
        matplotlib.rc("ytick", color=PALE)
        count = len(sizes.contexts)
        figure = Figure(figsize=(14, 1.6 + 2.25 * count), dpi=130)
        figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.08, hspace=0.04)
        figure.suptitle(
            "Which positions the indexer chose while it decoded\n",
            fontsize=15,
            fontweight="bold",
            ha="left",
            x=0.012,
        )
        figure.text(
            0.012,
            1 - 0.62 / figure.get_figheight(),
            f"DeepSeek sparse attention, {sizes.name} sizes, top-{sizes.sparse_count:,};"
            f" one row of pixels per decode step, grey: not decoded yet;"
            f" text: {_shortened(text.source)}",
            color=PALE,
        )
        axes = figure.subplots(count, 2, width_ratios=(4, 1), squeeze=False)
        for sequence in range(count):
            _whole(axes[sequence, 0], steps, sequence)
            image = _near(axes[sequence, 1], steps, sequence)
        axes[-1, 0].set_xlabel("token position in the sequence")
        axes[-1, 1].set_xlabel("positions before the decoded token")
        bar = figure.colorbar(image, ax=axes, location="right", fraction=0.025, aspect=45, pad=0.01)
        bar.set_label("share of the positions under a pixel that were chosen")
        bar.set_ticks([0, 1, 5, 10, 25, 50, 75, 100])
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
        bar.outline.set_visible(False)
        figure.savefig(path)


def chosen_share(chosen: Sequence[Tensor], lengths: Sequence[int], columns: int) -> Tensor:
    """Return the percentage of chosen positions in each column, fp32 [steps, columns].

    chosen holds each step's positions (-1: none), lengths its context length. The columns divide
    the longest context evenly; a column beyond a step's context is NaN.
    """
    longest = max(lengths)
    grid = torch.full((len(chosen), columns), torch.nan)
    edges = torch.linspace(0, longest, columns + 1).round().long()
    for row, positions, length in zip(grid, chosen, lengths, strict=True):
        mask = torch.zeros(longest)
        mask[positions[positions >= 0].long()] = 100
        running = torch.cat((torch.zeros(1), mask.cumsum(0, dtype=torch.float64)))
        width = (edges[1:].clamp_max(length) - edges[:-1]).clamp_min(0)
        total = running[edges[1:]] - running[edges[:-1]]
        row[:] = torch.where(width > 0, total / width, torch.nan)
    return grid


def near_share(chosen: Sequence[Tensor], lengths: Sequence[int], near: int) -> Tensor:
    """Return 100 where one of the last `near` positions was chosen, else 0: fp32 [steps, near]."""
    grid = torch.full((len(chosen), near), torch.nan)
    for row, positions, length in zip(grid, chosen, lengths, strict=True):
        seen = min(near, length)
        row[near - seen :] = 0
        columns = positions.long() - (length - near)
        row[columns[(positions >= 0) & (columns >= 0)]] = 100
    return grid


def _whole(axes: Axes, steps: Sequence[Step], sequence: int) -> AxesImage:
    lengths = [step.lengths[sequence] for step in steps]
    chosen = [step.selected[sequence] for step in steps]
    image = _image(axes, chosen_share(chosen, lengths, min(COLUMNS, max(lengths))), 0, max(lengths))
    kept = int((chosen[-1] >= 0).sum())
    share = kept / lengths[-1]
    axes.set_title(
        f"Sequence {sequence + 1}: context {lengths[0]:,} to {lengths[-1]:,}",
        loc="left",
        fontsize=10.5,
        fontweight="bold",
    )
    text = "every position chosen" if share == 1 else f"{kept:,} chosen, {share:.1%} of the context"
    axes.set_title(text, loc="right", fontsize=9, color=PALE)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylabel("decode step")
    return image


def _near(axes: Axes, steps: Sequence[Step], sequence: int) -> AxesImage:
    lengths = [step.lengths[sequence] for step in steps]
    chosen = [step.selected[sequence] for step in steps]
    image = _image(axes, near_share(chosen, lengths, NEAR), -NEAR, 0)
    axes.set_title(f"its last {NEAR}", loc="left", fontsize=9, color=PALE)
    axes.set_xticks(range(-NEAR, 1, NEAR // 4))
    axes.tick_params(labelleft=False)
    return image


def _image(axes: Axes, grid: Tensor, left: float, right: float) -> AxesImage:
    image = axes.imshow(
        grid.numpy(),
        cmap=SHADES,
        norm=SCALE,
        aspect="auto",
        interpolation="nearest",
        extent=(left, right, len(grid) + 0.5, 0.5),
    )
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    axes.tick_params(length=2.5, width=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return image


def _shortened(source: str, longest: int = 70) -> str:
    return source if len(source) <= longest else f"…{source[-longest:]}"
