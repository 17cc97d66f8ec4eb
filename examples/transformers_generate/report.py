"""What the example prints when it has generated."""

from __future__ import annotations

from collections.abc import Iterator

from examples.transformers_generate.generation import OURS, WAYS, Generated

REFERENCE = WAYS[0]


def table(results: list[Generated]) -> Iterator[str]:
    """Yield the lines of the table of speed and equality, a context a line."""
    others = [way for way in WAYS if way != REFERENCE]
    yield (
        f"{'tokens/s':>8}"
        + "".join(f"{way:>14}" for way in WAYS)
        + "".join(f"{f'{way} / ours':>14}" for way in WAYS if way != OURS)
        + "".join(f"{f'{way} = {REFERENCE}':>22}" for way in others)
    )
    for context, by_way in _by_context(results).items():
        speeds = "".join(f"{by_way[way].tokens_per_second:>14.1f}" for way in WAYS)
        ratios = "".join(
            f"{by_way[way].seconds / by_way[OURS].seconds:>13.1f}x" for way in WAYS if way != OURS
        )
        equal = "".join(f"{_equality(by_way[way], by_way[REFERENCE]):>22}" for way in others)
        yield f"{context:>8,}{speeds}{ratios}{equal}"


def differing(results: list[Generated]) -> list[Generated]:
    """Return what is not the tokens of the reference."""
    by_context = _by_context(results)
    return [made for made in results if made.differs_at(by_context[made.context][REFERENCE])]


def _equality(made: Generated, expected: Generated) -> str:
    at = made.differs_at(expected)
    return f"all {len(made.tokens)}" if at is None else f"not from token {at} on"


def _by_context(results: list[Generated]) -> dict[int, dict[str, Generated]]:
    found: dict[int, dict[str, Generated]] = {}
    for made in results:
        found.setdefault(made.context, {})[made.way] = made
    return found
