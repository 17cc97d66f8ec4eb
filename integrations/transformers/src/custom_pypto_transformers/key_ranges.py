"""The mask as a range of keys for each sequence instead of a tensor of queries x keys."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, NoReturn

import torch
from torch import Tensor
from transformers import masking_utils

from .support import SERVED

# A release without it gets no KeyRanges.
_CAUSAL: Any = getattr(masking_utils, "causal_mask_function", None)


class Segments(NamedTuple):
    """Each cache row as three sequences: padding, the keys up to the last real query, the rest.

    A batch of rows [B, T] becomes 3 B sequences of different lengths, in place: no key is copied,
    whatever the padding. The first of the three has no queries, the second the real queries, the
    third the padding queries.

    Attributes:
        query_ends: [3 B], int32, prefix sums of the queries.
        bounds: [B, 2], int32, where in a row the second sequence begins and ends.
        shift: [B, S, 1], int32. A position in the second sequence plus this is the position in the
            row; for a padding query the sum is negative.
    """

    query_ends: Tensor
    bounds: Tensor
    shift: Tensor

    def key_ends(self, pitch: int) -> Tensor:
        """Return prefix sums [3 B] of the keys, int32, for rows `pitch` keys apart."""
        rest = torch.full_like(self.bounds[:, :1], pitch)
        row = torch.arange(len(rest), dtype=torch.int32, device=rest.device)[:, None]
        return (torch.cat([self.bounds, rest], -1) + row * pitch).flatten()


@dataclass(frozen=True)
class KeyRanges:
    """The causal mask of B sequences, each with contiguous real keys.

    transformers passes it from layer to layer like a 4-D mask.

    Attributes:
        queries: S, the queries of a sequence in this forward pass.
        keys: T, the length of a cache row.
        offset: the number of keys before the first query; a tensor [] with a static cache.
        first, end: [B]; query s of sequence b is key ``offset + s`` and sees the keys ``first[b]``
            to ``end[b] - 1`` that are not after it; a padding query may see none. None if nothing
            is padded and ``T = offset + S``.
        segments: the same for the indexer; None if these are None.
        kv_offset: the number of keys before the row, which a sliding cache has dropped.
        window: the last keys that a query sees, its own too; None for all.
    """

    queries: int
    keys: int
    offset: int | Tensor
    first: Tensor | None = None
    end: Tensor | None = None
    segments: Segments | None = None
    kv_offset: int = 0
    window: int | None = None

    @classmethod
    def padded(
        cls, queries: int, keys: int, offset: int | Tensor, first: Tensor, end: Tensor
    ) -> KeyRanges:
        """Make the ranges of padded sequences, or of a static cache."""
        rows = (end - offset).clamp(0, queries)
        stop = rows + offset
        first = torch.minimum(first, stop)
        number = torch.arange(first.shape[0], device=first.device)[:, None]
        none, all_queries = torch.zeros_like(rows), torch.full_like(rows, queries)
        query_ends = torch.stack([none, rows, all_queries], -1) + number * queries
        query = torch.arange(queries, device=first.device)
        shift = torch.where(query < rows[:, None], first[:, None], torch.iinfo(torch.int32).min)
        segments = Segments(
            query_ends.flatten().int(),
            torch.stack([first, stop], -1).int(),
            shift.int()[:, :, None],
        )
        return cls(queries, keys, offset, first, end, segments)

    def dense(self, device: torch.device) -> Tensor:
        """Return the mask [B or 1, 1, S, T] as booleans, True where a query sees a key."""
        keys = torch.arange(self.keys, device=device) + self.kv_offset
        query = torch.arange(self.queries, device=device)[:, None] + self.offset
        seen = keys <= query
        if self.window is not None:
            seen = seen & (keys > query - self.window)
        if self.first is None or self.end is None:
            return seen[None, None]
        real = (keys >= self.first[:, None]) & (keys < self.end[:, None])
        return (seen & real[:, None, :])[:, None]

    def window_positions(self, device: torch.device) -> Tensor:
        """Return the positions in a row that the queries see, [B or 1, S, window]; -1 for none."""
        query = torch.arange(self.queries, device=device)[:, None] + self.offset
        keys = query + torch.arange(1 - int(self.window or 1), 1, device=device)
        found = (keys - self.kv_offset).clamp(min=-1)
        if self.first is None or self.end is None:
            return found[None]
        real = (keys >= self.first[:, None, None]) & (keys < self.end[:, None, None])
        return torch.where(real, found, -1)

    def __getitem__(self, _index: Any) -> KeyRanges:
        """Return itself for ``mask[:, 0, :, :]``: all heads share it."""
        return self

    def to(self, device: torch.device | str | int, **kwargs: Any) -> KeyRanges:
        """Copy it to a device; accelerate calls this for models on several devices."""

        def moved(value: Any) -> Any:
            if isinstance(value, Segments):
                return Segments(*map(moved, value))
            return value.to(device, **kwargs) if isinstance(value, Tensor) else value

        return KeyRanges(**{field.name: moved(getattr(self, field.name)) for field in fields(self)})

    def contiguous(self) -> KeyRanges:
        """Return itself; `generate` calls this on the mask of a static cache."""
        return self

    @property
    def dtype(self) -> NoReturn:
        """Fail where transformers' own classes, which read this, run instead of ours.

        Raises:
            RuntimeError: always; the text says how to make a model that has our classes.
        """
        raise RuntimeError(
            "attn_implementation='custom_pypto': the attention of this model is transformers' own"
            f" class. custom_pypto serves {SERVED}"
        )


def make_key_ranges(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = _CAUSAL,
    attention_mask: Tensor | None = None,
    device: torch.device | str = "cpu",
    **kwargs: Any,
) -> KeyRanges | Tensor:
    """Make the mask of attn_implementation='custom_pypto', once per forward pass.

    It has the parameters of transformers' AttentionMaskInterface; ``attention_mask`` is the
    padding mask [B, keys so far] as booleans, or None.

    Returns:
        The ranges if the mask is causal and each sequence's real keys are contiguous; else
        transformers' own mask [B, 1, S, T], with which the attention falls back.
    """

    def transformers_mask() -> Tensor:
        mask: Tensor = masking_utils.sdpa_mask(
            batch_size=batch_size,
            q_length=q_length,
            kv_length=kv_length,
            q_offset=q_offset,
            kv_offset=kv_offset,
            mask_function=mask_function,
            attention_mask=attention_mask,
            device=device,
            **{**kwargs, "allow_is_causal_skip": False},
        )
        return mask

    window = _window_of(mask_function)
    if window is None and (mask_function is not _CAUSAL or kv_offset != 0):
        return transformers_mask()
    is_tracing = torch.compiler.is_compiling()
    if attention_mask is not None and not is_tracing and bool(attention_mask.all()):
        # The mask may be shorter than a static cache.
        is_whole = attention_mask.shape[-1] >= kv_length
        attention_mask = None if is_whole else attention_mask
    if attention_mask is None:
        if window is not None:
            return KeyRanges(q_length, kv_length, q_offset, kv_offset=kv_offset, window=window)
        if isinstance(q_offset, int | torch.SymInt) and q_offset + q_length == kv_length:
            return KeyRanges(q_length, kv_length, q_offset)
        first = torch.zeros(batch_size, dtype=torch.int64, device=device)
        return KeyRanges.padded(q_length, kv_length, q_offset, first, first + q_offset + q_length)

    mask = attention_mask[:, : kv_offset + kv_length]
    first = mask.view(torch.uint8).argmax(-1)
    end = first + mask.sum(-1)
    begins = (mask[:, 1:] & ~mask[:, :-1]).sum(-1) + mask[:, 0]
    if is_tracing:
        torch._assert_async(
            (begins <= 1).all(),
            "attn_implementation='custom_pypto': the attention mask has zeros between ones; call"
            " the model without torch.compile, or set attn_implementation='sdpa'",
        )
    elif bool((begins > 1).any()):
        return transformers_mask()
    if window is not None:
        return KeyRanges(q_length, kv_length, q_offset, first, end, None, kv_offset, window)
    return KeyRanges.padded(q_length, kv_length, q_offset, first, end)


def _window_of(mask_function: Callable[..., Any]) -> int | None:
    """Return the window if this is transformers' mask of a window of tokens, and no more."""
    # torch.compile cannot trace this.
    if mask_function is _CAUSAL or torch.compiler.is_compiling():
        return None
    parts = inspect.getclosurevars(mask_function).nonlocals.get("mask_functions", ())
    if len(parts) != 2 or parts[1] is not _CAUSAL:
        return None
    overlay = masking_utils.sliding_window_overlay
    if getattr(parts[0], "__code__", None) not in overlay.__code__.co_consts:
        return None
    window: int = inspect.getclosurevars(parts[0]).nonlocals["sliding_window"]
    return window
