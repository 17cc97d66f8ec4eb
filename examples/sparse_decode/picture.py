"""The picture of which positions the indexer chose."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from examples.sparse_decode.decode import Step
from examples.sparse_decode.layer import Sizes

COLUMNS = 512
"""Most columns of a panel; a column of a long context covers several positions."""

NEAR = 128
"""How many of the last positions the right-hand panels show one by one."""


def draw(steps: Sequence[Step], sizes: Sizes, path: Path) -> None:
    """Write a PNG with a row per sequence: its whole context, and the end of it enlarged."""
    count = len(sizes.lengths)
    figure = Figure(figsize=(14, 1 + 2.25 * count), dpi=130, layout="constrained")
    figure.suptitle(
        f"Positions that the indexer chose, {sizes.name} sizes: a row of pixels per decode step,"
        " white: not decoded yet"
    )
    axes = figure.subplots(count, 2, width_ratios=(4, 1), squeeze=False)
    for sequence, (whole, near) in enumerate(axes):
        last = steps[-1].lengths[sequence]
        edges = torch.linspace(0, last, min(COLUMNS, last) + 1).round().long()
        _image(whole, steps, sequence, edges)
        kept = int((steps[-1].selected[sequence] >= 0).sum())
        whole.set(title=f"context {last:,}: {kept:,} chosen, {kept / last:.1%}")
        whole.set(ylabel="decode step", xlabel="position in the sequence")
        image = _image(near, steps, sequence, torch.arange(-NEAR, 1), from_end=True)
        near.set(title=f"its last {NEAR}", xlabel="before the decoded token")
    figure.colorbar(image, ax=axes, label="% of the positions under a pixel that were chosen")
    figure.savefig(path, format="png")


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


def _image(
    axes: Axes, steps: Sequence[Step], sequence: int, edges: Tensor, *, from_end: bool = False
) -> AxesImage:
    """Draw a row of pixels for each step, whose columns end at `edges`."""
    rows = []
    for step in steps:
        length = step.lengths[sequence]
        own = length + edges if from_end else edges
        rows.append(chosen_share(step.selected[sequence], length, own))
    return axes.imshow(
        torch.stack(rows).numpy(),
        cmap=colormaps["inferno_r"],
        norm=PowerNorm(0.4, vmin=0, vmax=100),
        aspect="auto",
        interpolation="nearest",
        extent=(int(edges[0]), int(edges[-1]), len(rows) + 0.5, 0.5),
    )
