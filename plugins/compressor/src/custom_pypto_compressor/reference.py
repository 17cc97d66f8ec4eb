"""The ops in plain PyTorch, row by row in fp64, and how to compare with them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

TokenAt = Callable[[int], tuple[Tensor, Tensor]]
"""Returns kv and scores of the token at a position, [coff * D] each."""


@dataclass(frozen=True)
class Sequence:
    """New tokens of a sequence: `count` rows of x from `row` on, at positions from `start` on."""

    index: int
    row: int
    count: int
    start: int


Integers = Tensor | None


def sequences(x: Tensor, ends: Integers, used: Integers, starts: Integers) -> Iterator[Sequence]:
    """Yield the sequences of a call."""
    bounds = [b * x.shape[1] for b in range(len(x) + 1)] if ends is None else ends.tolist()
    for b, (row, end) in enumerate(pairwise(bounds)):
        count = end - row if used is None else int(used[b])
        yield Sequence(b, row, count, 0 if starts is None else int(starts[b]))


def windows(
    x: Tensor, ends: Integers, used: Integers, starts: Integers, ratio: int
) -> Iterator[tuple[tuple[int, ...], Sequence, int]]:
    """Yield each window that a call closes: the place of its row, its sequence, its number."""
    packed = 0
    for each in sequences(x, ends, used, starts):
        first = each.start // ratio
        for window in range(first, (each.start + each.count) // ratio):
            yield (each.index, window - first) if ends is None else (packed,), each, window
            packed += 1


def row_tokens(window: int, ratio: int, coff: int, token: TokenAt) -> tuple[Tensor, Tensor]:
    """Return kv and scores of the tokens of a row, [coff * ratio, D] each.

    With coff 2 the first half of a token's channels is for the row after its own. Before the first
    window there are zeros with scores of -inf.
    """
    parts: list[tuple[Tensor, Tensor]] = []
    for part in range(coff):
        first = (window + part - coff + 1) * ratio
        both = [token(position) for position in range(max(first, 0), max(first, 0) + ratio)]
        chunks = [torch.stack(each).chunk(coff, -1)[part] for each in zip(*both, strict=True)]
        if first < 0:
            chunks = [torch.zeros_like(chunks[0]), torch.full_like(chunks[1], float("-inf"))]
        parts.append((chunks[0], chunks[1]))
    return torch.cat([kv for kv, _ in parts]), torch.cat([scores for _, scores in parts])


def row_count(x: Tensor, cu_seqlens: Tensor | None, ratio: int) -> tuple[int, ...]:
    """Return the shape of the outputs without what a row has."""
    if cu_seqlens is None:
        return x.shape[0], -(-x.shape[1] // ratio)
    return (min(x.shape[0], x.shape[0] // ratio + len(cu_seqlens) - 1),)


def compressor(
    x: Tensor,
    wkv: Tensor,
    wgate: Tensor,
    state_cache: Tensor,
    ape: Tensor,
    cmp_ratio: int = 4,
    *,
    state_block_table: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    seqused: Tensor | None = None,
    start_pos: Tensor | None = None,
    coff: int = 1,
    cache_mode: int = 1,
) -> Tensor:
    """npu_compressor: reads all of the state, then writes it, in the order of the tokens."""
    assert state_block_table is not None
    state, table, width = state_cache.clone(), state_block_table.tolist(), wkv.shape[0]
    rows = x.double().flatten(0, -2)
    kv, scores = rows @ wkv.double().T, rows @ wgate.double().T
    out = x.new_zeros(*row_count(x, cu_seqlens, cmp_ratio), width // coff, dtype=torch.float64)

    def place(b: int, position: int) -> tuple[int, int]:
        size = state.shape[1]
        return (table[b] if cache_mode == 2 else table[b][position // size]), position % size

    def token_at(each: Sequence, position: int) -> tuple[Tensor, Tensor]:
        if position < each.start:
            row = state[place(each.index, position)].double()
            return row[:width], row[width:]
        at = each.row + position - each.start
        return kv[at], scores[at] + ape[position % cmp_ratio]

    for index, each, window in windows(x, cu_seqlens, seqused, start_pos, cmp_ratio):
        kvs, of_row = row_tokens(window, cmp_ratio, coff, partial(token_at, each))
        out[index] = (of_row.softmax(0) * kvs).sum(0)
    for each in sequences(x, cu_seqlens, seqused, start_pos):
        end = each.start + each.count
        needed = (end // cmp_ratio - coff + 1) * cmp_ratio
        for position in range(each.start, end):
            block, offset = place(each.index, position)
            if position >= needed if cache_mode == 2 else block != 0:
                state_cache[block, offset] = torch.cat(token_at(each, position)).float()
    return out.to(x.dtype)


def train(
    x: Tensor,
    wkv: Tensor,
    wgate: Tensor,
    ape: Tensor,
    cmp_ratio: int = 4,
    *,
    cu_seqlens: Tensor | None = None,
    seqused: Tensor | None = None,
    coff: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """npu_compressor_train."""
    rows = x.double().flatten(0, -2)
    both = rows @ wkv.double().T, rows @ wgate.double().T

    def token(each: Sequence, position: int) -> tuple[Tensor, Tensor]:
        kv, scores = (of_all[each.row + position] for of_all in both)
        return kv, scores + ape[position % cmp_ratio]

    shape = (*row_count(x, cu_seqlens, cmp_ratio), coff * cmp_ratio, wkv.shape[0] // coff)
    weights, kv = torch.zeros(2, *shape, dtype=torch.float64, device="cpu")
    for index, each, window in windows(x, cu_seqlens, seqused, None, cmp_ratio):
        kv[index], scores = row_tokens(window, cmp_ratio, coff, partial(token, each))
        weights[index] = scores.softmax(0)
    return (weights * kv).sum(-2).to(x.dtype), weights.to(ape.dtype), kv.to(ape.dtype)


def backward(
    d_cmp_kv: Tensor,
    x: Tensor,
    wkv: Tensor,
    wgate: Tensor,
    softmax_score: Tensor,
    kv: Tensor,
    cu_seqlens: Tensor | None = None,
    seqused: Tensor | None = None,
    start_pos: Tensor | None = None,
    cmp_ratio: int = 4,
    coff: int = 1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """npu_compressor_backward, by the formulas of aclnnCompressorGrad.md of CANN."""
    rows, width = x.double().flatten(0, -2), wkv.shape[0]
    channels = width // coff
    d_kv, d_scores = torch.zeros(2, len(rows), width, dtype=torch.float64, device="cpu")
    d_ape = torch.zeros(cmp_ratio, width, dtype=torch.float64, device="cpu")
    for index, each, window in windows(x, cu_seqlens, seqused, start_pos, cmp_ratio):
        weight, gradient = softmax_score[index].double(), d_cmp_kv[index].double()
        d_weight = gradient * kv[index].double()
        d_score = weight * (d_weight - (weight * d_weight).sum(0))
        for slot in range(coff * cmp_ratio):
            position = (window - coff + 1) * cmp_ratio + slot
            if position < each.start:
                continue
            at = each.row + position - each.start
            half = slice(slot // cmp_ratio * channels, (slot // cmp_ratio + 1) * channels)
            d_kv[at, half] = weight[slot] * gradient
            d_scores[at, half] = d_score[slot]
            d_ape[position % cmp_ratio, half] += d_score[slot]
    d_x = (d_kv @ wkv.double() + d_scores @ wgate.double()).reshape(x.shape)
    return (
        d_x.to(x.dtype),
        (d_kv.T @ rows).to(x.dtype),
        (d_scores.T @ rows).to(x.dtype),
        d_ape.to(softmax_score.dtype),
    )


TOLERANCES = {
    torch.bfloat16: 2**-8,
    torch.float16: 2**-11,
    torch.float32: 1e-5,
    torch.float64: 1e-9,
}
"""Of a result, relative to the largest number in it."""


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare results, or written arguments by name; each with its own largest number."""
    if isinstance(expected, Mapping):
        actual, expected = [actual[name] for name in expected], [*expected.values()]
    if isinstance(expected, Tensor):
        actual, expected = [actual], [expected]
    for one, other in zip(actual, expected, strict=True):
        largest = other.abs().nan_to_num(posinf=0).amax().item() if other.numel() else 0
        # A sum of many numbers may be small.
        torch.testing.assert_close(
            one, other, rtol=TOLERANCES[other.dtype], atol=TOLERANCES[other.dtype] * largest
        )
