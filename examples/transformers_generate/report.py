"""The table and the picture of the results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.plot import draw_times
from examples.transformers_generate.generation import IMPLEMENTATIONS, OURS, Generated

REFERENCE = IMPLEMENTATIONS[0]
_COLORS = ("#c8553d", "#ee964b", "#1b2a41")


def table(results: list[Generated]) -> Iterator[str]:
    """Yield the lines of the table of speed and equality, one for each context."""
    others = [name for name in IMPLEMENTATIONS if name != REFERENCE]
    yield (
        f"{'tokens/s':>8}"
        + "".join(f"{name:>14}" for name in IMPLEMENTATIONS)
        + "".join(f"{f'{name} / ours':>14}" for name in IMPLEMENTATIONS if name != OURS)
        + "".join(f"{f'{name} = {REFERENCE}':>22}" for name in others)
    )
    for context, by_name in _by_context(results).items():
        speeds = "".join(f"{1 / by_name[name].seconds:>14.1f}" for name in IMPLEMENTATIONS)
        ratios = "".join(
            f"{by_name[name].seconds / by_name[OURS].seconds:>13.1f}x"
            for name in IMPLEMENTATIONS
            if name != OURS
        )
        equal = "".join(f"{_equality(by_name[name], by_name[REFERENCE]):>22}" for name in others)
        yield f"{context:>8,}{speeds}{ratios}{equal}"


def draw(results: list[Generated], path: Path) -> None:
    """Write a PNG of the time per token by context, with a line for each implementation."""
    figure = Figure(figsize=(8, 5), dpi=130, layout="constrained")
    axes = figure.subplots()
    times: dict[str, dict[int, float]] = {name: {} for name in IMPLEMENTATIONS}
    for made in results:
        times[made.implementation][made.context] = made.seconds
    draw_times(axes, times, _COLORS)
    axes.set_title("A small DeepSeek-V3.2 in transformers, by attn_implementation", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def find_differing(results: list[Generated]) -> list[Generated]:
    """Return the results whose tokens differ from the reference's."""
    by_context = _by_context(results)
    return [made for made in results if made.differs_at(by_context[made.context][REFERENCE])]


def _equality(made: Generated, expected: Generated) -> str:
    at = made.differs_at(expected)
    return f"all {len(made.tokens)}" if at is None else f"not from token {at} on"


def _by_context(results: list[Generated]) -> dict[int, dict[str, Generated]]:
    found: dict[int, dict[str, Generated]] = {}
    for made in results:
        found.setdefault(made.context, {})[made.implementation] = made
    return found
