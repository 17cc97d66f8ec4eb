"""What is raised for a contract that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class ContractError(ValueError):
    """A contract says something that it cannot mean; the text names the op and the key."""


def guess(word: str, known: Iterable[str]) -> str:
    """Return what `word` may have been meant to be, to end a message with; or nothing."""
    # Slow to import, for errors only.
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def any_of(texts: Iterable[str]) -> str:
    """Return ``a``, ``a or b``, ``a, b or c``."""
    *most, last = texts
    return f"{', '.join(most)} or {last}" if most else last


@contextmanager
def at(key: str) -> Iterator[None]:
    """Put the key before the text of an error."""
    try:
        yield
    except ContractError as error:
        raise ContractError(f"{key}: {error}") from None
