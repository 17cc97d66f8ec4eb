"""The refusal of what a published signature can say and our op does not do."""

from __future__ import annotations

from torch import Tensor

NO_WINDOW = 2**63 - 1
"""What `pre_tokens` and `next_tokens` are when there is no window."""


def _shown(given: object) -> str:
    # A tensor's numbers would have to be waited for.
    return f"a tensor of shape {list(given.shape)}" if isinstance(given, Tensor) else repr(given)


def require(op: str, argument: str, given: object, wanted: object, hint: str) -> None:
    """Refuse an argument that is not as wanted.

    Raises:
        ValueError: it says what was given, what is wanted, and `hint`.
    """
    if given is not wanted and given != wanted:
        raise ValueError(
            f"{op}: argument {argument!r} must be {wanted!r}, got {_shown(given)}; {hint}"
        )


def require_no_window(op: str, pre_tokens: int, next_tokens: int) -> None:
    """Refuse token windows.

    Raises:
        ValueError: there is one.
    """
    hint = "token windows are not supported: leave it out"
    require(op, "pre_tokens", pre_tokens, NO_WINDOW, hint)
    require(op, "next_tokens", next_tokens, NO_WINDOW, hint)
