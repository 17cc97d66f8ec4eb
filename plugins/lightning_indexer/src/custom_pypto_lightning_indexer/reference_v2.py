"""The second version of the ops in plain PyTorch, in float64, and how to compare with it."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from custom_pypto_plugin import SampleInput
from torch import Tensor

from . import QUANT_V2, V2, reference, selection_comparison, values_reference


def lightning_indexer(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """(positions, scores or [0]); arguments as those of npu_lightning_indexer_v2."""
    return _select(_bound(V2, args, kwargs), torch.float32)


def quant_lightning_indexer(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """(positions, scores or [0]); arguments as those of npu_quant_lightning_indexer_v2."""
    return _select(_bound(QUANT_V2, args, kwargs), torch.bfloat16)


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare two results of npu_lightning_indexer_v2: positions, and the scores of those found.

    Raises:
        AssertionError: they differ by more than rounding.
    """
    _compare(actual, expected, _bound(V2, sample.args, sample.kwargs))


def compare_quant(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare two results of npu_quant_lightning_indexer_v2, as `compare` does.

    Raises:
        AssertionError: they differ.
    """
    _compare(actual, expected, _bound(QUANT_V2, sample.args, sample.kwargs))


def _bound(op: str, args: Any, kwargs: Any) -> SimpleNamespace:
    """The arguments by the names of the quantised op, with scales; without scales they are 1."""
    given = bind_arguments(contract(op), args, kwargs)
    if op == V2:
        tensors = {"query": given["q"], "key": given["k"], "weights": given["w"]}
        scales = {
            f"{name}_dequant_scale": torch.ones(tensors[name].shape[:-1], device="cpu")
            for name in ("query", "key")
        }
        given |= {**tensors, **scales}
    return SimpleNamespace(**given)


def rows_with_keys(a: SimpleNamespace) -> Iterator[tuple[tuple[int, ...], tuple[Any, ...]]]:
    """Every query token that sees a key: its index, and where in `key` the keys are it sees.

    Token s of S sees key c if c < floor((L * cmp_ratio + residual - S + s + 1) / cmp_ratio), where
    the sequence has L keys: "create_mask" of lightning_indexer_v2_golden.py in CANN's
    ops-transformer.
    """
    for b, (start, rows, first, tokens) in enumerate(_sequences(a)):
        residual = 0 if a.cmp_residual_k is None else int(a.cmp_residual_k[b])
        for s in range(rows):
            seen = tokens
            if a.mask_mode == 3:
                seen = max((tokens * a.cmp_ratio + residual - rows + s + 1) // a.cmp_ratio, 0)
            if seen == 0:
                continue
            index = (start + s,) if a.layout_q == "TND" else (b, s)
            positions = torch.arange(seen, device="cpu")
            if a.layout_k == "PA_BBND":
                size = a.key.shape[1]
                yield index, (a.block_table[b].long()[positions // size], positions % size)
            elif a.layout_k == "TND":
                yield index, (first + positions,)
            else:
                yield index, (b, positions)


def _sequences(a: SimpleNamespace) -> Iterator[tuple[int, int, int, int]]:
    """The first query token and key of each sequence, in TND, and how many it has of both."""
    batch = len(a.cu_seqlens_q) - 1 if a.layout_q == "TND" else len(a.query)
    for b in range(batch):
        found: list[int] = []
        for tensor, sums, used in (
            (a.query, a.cu_seqlens_q, a.seqused_q),
            (a.key, a.cu_seqlens_k, a.seqused_k),
        ):
            first, last = (0, tensor.shape[1]) if sums is None else sums[b : b + 2].tolist()
            found += [first, last - first if used is None else int(used[b])]
        yield found[0], found[1], found[2], found[3]


def _scores(a: SimpleNamespace) -> Iterator[reference.Row]:
    for index, where in rows_with_keys(a):
        of_row = (each[index] for each in (a.query, a.weights, a.query_dequant_scale))
        of_keys = (each[where] for each in (a.key, a.key_dequant_scale))
        yield from reference.rows_of(index, *(each.double() for each in (*of_row, *of_keys)))


def _select(a: SimpleNamespace, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    shape = (*a.query.shape[:-2], a.key.shape[-2], a.topk)
    indices = torch.full(shape, -1, dtype=torch.int32, device="cpu")
    for at, scores in _scores(a):
        best = reference.descending(scores.float())[: a.topk]
        indices[at][: len(best)] = best
    values = _values_of(indices, a, dtype)
    return _moved(indices, a, 1), values


def _values_of(indices: Tensor, a: SimpleNamespace, dtype: torch.dtype) -> Tensor:
    """The scores of the keys at positions without an offset, -inf for -1; [0] if not wanted."""
    if not a.return_value:
        return torch.empty(0, dtype=dtype, device="cpu")
    values = torch.full(indices.shape, -torch.inf, dtype=torch.float64, device="cpu")
    for at, scores in _scores(a):
        chosen = indices[at].long()
        chosen = chosen[chosen >= 0]
        values[at][: len(chosen)] = scores[chosen]
    return values.to(dtype)


def _moved(indices: Tensor, a: SimpleNamespace, sign: int) -> Tensor:
    """The positions with the offsets added, or subtracted."""
    if a.output_idx_offset is None:
        return indices
    offsets = a.output_idx_offset.int()[..., None] * sign
    return indices.where(indices == -1, indices + offsets)


def _compare(actual: Any, expected: Any, a: SimpleNamespace) -> None:
    found, wanted = (_moved(each[0], a, -1) for each in (actual, expected))
    selection_comparison.compare_rows(found, wanted, _rows(a))
    values = expected[1]
    if a.return_value:
        values = _values_of(found, a, values.dtype)
    values_reference.assert_close("values", actual[1], values)


def _rows(a: SimpleNamespace) -> Iterator[Any]:
    query, key = (
        tensor.double() * scales.double()[..., None]
        for tensor, scales in ((a.query, a.query_dequant_scale), (a.key, a.key_dequant_scale))
    )
    for index, where in rows_with_keys(a):
        of_row = (query[index], a.weights[index].double())
        yield from selection_comparison.rows_of_heads(index, *of_row, key[where])
