"""The picture of which positions the indexer chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

from benchmarks.eager import SPARSE_COUNT
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
            f"DeepSeek sparse attention, {sizes.name} sizes, top-{SPARSE_COUNT:,};"
            f" one row of pixels per decode step, grey: not decoded yet;"
            f" text: {_shorten(text.source)}",
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


def chosen_share(chosen: Tensor, length: int, edges: Tensor) -> Tensor:
    """Return the percentage of chosen positions between each two edges, fp32 [edges - 1].

    `chosen` holds a step's positions (-1: none), `length` its context length. Where no position of
    the context lies between two edges, the share is NaN.
    """
    mask = torch.zeros(length)
    mask[chosen[chosen >= 0].long()] = 100
    running = torch.cat((torch.zeros(1), mask.cumsum(0, dtype=torch.float64)))
    inside = edges.clamp(0, length)
    width, total = inside.diff(), running[inside].diff()
    return torch.where(width > 0, total / width, torch.nan).float()


def _whole(axes: Axes, steps: Sequence[Step], sequence: int) -> None:
    first, last = steps[0].lengths[sequence], steps[-1].lengths[sequence]
    edges = torch.linspace(0, last, min(COLUMNS, last) + 1).round().long()
    _image(axes, steps, sequence, lambda length: edges, (0, last))
    kept = int((steps[-1].selected[sequence] >= 0).sum())
    share = kept / last
    title = f"Sequence {sequence + 1}: context {first:,} to {last:,}"
    axes.set_title(title, loc="left", fontsize=10.5, fontweight="bold")
    text = "every position chosen" if share == 1 else f"{kept:,} chosen, {share:.1%} of the context"
    axes.set_title(text, loc="right", fontsize=9, color=PALE)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylabel("decode step")


def _near(axes: Axes, steps: Sequence[Step], sequence: int) -> AxesImage:
    edges = torch.arange(-NEAR, 1)
    image = _image(axes, steps, sequence, lambda length: length + edges, (-NEAR, 0))
    axes.set_title(f"its last {NEAR}", loc="left", fontsize=9, color=PALE)
    axes.set_xticks(range(-NEAR, 1, NEAR // 4))
    axes.tick_params(labelleft=False)
    return image


def _image(
    axes: Axes,
    steps: Sequence[Step],
    sequence: int,
    edges: Callable[[int], Tensor],
    extent: tuple[int, int],
) -> AxesImage:
    """Draw a row of pixels for each step; `edges` gives those of its columns by its length."""
    pairs = ((step.selected[sequence], step.lengths[sequence]) for step in steps)
    grid = torch.stack([chosen_share(chosen, length, edges(length)) for chosen, length in pairs])
    image = axes.imshow(
        grid.numpy(),
        cmap=SHADES,
        norm=SCALE,
        aspect="auto",
        interpolation="nearest",
        extent=(*extent, len(grid) + 0.5, 0.5),
    )
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    axes.tick_params(length=2.5, width=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return image


def _shorten(source: str, longest: int = 70) -> str:
    return source if len(source) <= longest else f"…{source[-longest:]}"
