"""The table and the picture of the results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure

from examples.transformers_generate.generation import IMPLEMENTATIONS, OURS, Generated

REFERENCE = IMPLEMENTATIONS[0]


def table(results: list[Generated]) -> Iterator[str]:
    """Yield the lines of the table of speed and equality, one for each context."""
    by_key = {(made.context, made.implementation): made for made in results}
    others = [name for name in IMPLEMENTATIONS if name != OURS]
    headings = (*IMPLEMENTATIONS, *(f"{name} / ours" for name in others), f"ours = {REFERENCE}")
    yield f"{'tokens/s':>8}" + "".join(f"{each:>16}" for each in headings)
    wrong = find_differing(results)
    for context in dict.fromkeys(made.context for made in results):
        made = {name: by_key[context, name] for name in IMPLEMENTATIONS}
        cells = [f"{1 / made[name].seconds:.1f}" for name in IMPLEMENTATIONS]
        cells += [f"{made[name].seconds / made[OURS].seconds:.1f}x" for name in others]
        cells.append("differ" if made[OURS] in wrong else f"all {len(made[OURS].tokens)}")
        yield f"{context:>8,}" + "".join(f"{each:>16}" for each in cells)


def find_differing(results: list[Generated]) -> list[Generated]:
    """Return the results whose tokens differ from the reference's."""
    right = {made.context: made.tokens for made in results if made.implementation == REFERENCE}
    return [made for made in results if made.tokens != right[made.context]]


def draw(results: list[Generated], path: Path) -> None:
    """Write a PNG of the time per token by context, with a line for each implementation."""
    figure = Figure(figsize=(8, 5), dpi=130, layout="constrained")
    axes = figure.subplots()
    for name in IMPLEMENTATIONS:
        made = [each for each in results if each.implementation == name]
        contexts = [each.context for each in made]
        axes.plot(contexts, [each.seconds * 1e3 for each in made], "o-", label=name)
        axes.set_xticks(contexts, [f"{context:,}" for context in contexts], minor=False)
    axes.set(xscale="log", yscale="log", xlabel="context, tokens", ylabel="ms for one token")
    axes.set_title("A small DeepSeek-V3.2 in transformers, by attn_implementation")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, format="png")
