"""Refusals of arguments that a published signature has and our op does not support."""

from __future__ import annotations

from torch import Tensor

ALL_TOKENS = 2**63 - 1
"""The published default of `pre_tokens` and `next_tokens`: there is no window."""


def require(op: str, argument: str, given: object, wanted: object, hint: str) -> None:
    """Refuse an argument that is not as wanted.

    Raises:
        ValueError: it names the given value, the wanted value, and `hint`.
    """
    if given is not wanted and given != wanted:
        # A tensor's repr would wait for its values.
        text = (
            f"a tensor of shape {list(given.shape)}" if isinstance(given, Tensor) else repr(given)
        )
        raise ValueError(f"{op}: argument {argument!r} must be {wanted!r}, got {text}; {hint}")
