"""The error of a contract that says something impossible, and the phrases of its texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from .fork_locks import FIRST_USE

# Where each wheel is in a clone of the project.
FOLDERS = {
    "custom-pypto-core": "./core",
    "custom-pypto-build": "./builder",
    "custom-pypto-blocks": "./blocks",
    "custom-pypto-testing": "./testing",
}


class ContractError(ValueError):
    """A contract says something that has no meaning; the text names the op and the key."""


def how_to_install(*wheels: str) -> str:
    """Return the end of a message that says how to install wheels of ours: names or folders."""
    folders = " ".join(FOLDERS.get(each, each) for each in wheels)
    return f"in a clone of the project, `pip install --no-build-isolation {folders}`"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the end of a message that suggests the most similar known word; or ''."""
    similar = find_similar(word, known)
    return f"; did you mean {similar[0]!r}?" if similar else ""


def find_similar(
    word: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6
) -> list[str]:
    """Return known words that are similar to `word`, the most similar first."""
    with FIRST_USE.lock:
        # Slow to import, for errors only.
        import difflib

    return difflib.get_close_matches(word, list(known), most, cutoff)


def check_known(word: str, known: Iterable[str], problem: str) -> None:
    """Check that a word is known.

    Raises:
        ContractError: it is not; the text is `problem`, with a suggestion.
    """
    words = list(known)
    if word not in words:
        raise ContractError(problem + did_you_mean(word, words))


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
