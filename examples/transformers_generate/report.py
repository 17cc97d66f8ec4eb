"""The table that the example prints after generating."""

from __future__ import annotations

from collections.abc import Iterator

from examples.transformers_generate.generation import IMPLEMENTATIONS, OURS, Generated

REFERENCE = IMPLEMENTATIONS[0]


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
        speeds = "".join(f"{by_name[name].tokens_per_second:>14.1f}" for name in IMPLEMENTATIONS)
        ratios = "".join(
            f"{by_name[name].seconds / by_name[OURS].seconds:>13.1f}x"
            for name in IMPLEMENTATIONS
            if name != OURS
        )
        equal = "".join(f"{_equality(by_name[name], by_name[REFERENCE]):>22}" for name in others)
        yield f"{context:>8,}{speeds}{ratios}{equal}"


def differing(results: list[Generated]) -> list[Generated]:
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
