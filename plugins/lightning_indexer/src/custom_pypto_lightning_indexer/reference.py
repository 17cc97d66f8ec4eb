"""The ops in plain PyTorch, in float64, one token after the other.

Every op is computed as npu_quant_lightning_indexer_v2; what an op does not have is 1, 0 or None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from torch import Tensor

from . import GRAD, OP, QUANT_OP, QUANT_V2, V2

Row = tuple[tuple[int, int], Tensor]
"""A row of the result: query token and key head, and the scores [eff] float64 by position."""
WITHOUT_VALUES = (OP, QUANT_OP)
_VALUES = {V2: torch.float32, QUANT_V2: torch.bfloat16}
"""The dtypes of values that are not query's."""


def select(op: str, *args: Any, **kwargs: Any) -> Any:
    """Positions, and for ops that have them values or [0]; arguments as the op's."""
    a = bind(op, args, kwargs)
    rows, heads = a.query.flatten(0, -3), a.key.shape[-2]
    indices = torch.full((len(rows), heads, a.topk), -1, dtype=torch.int32, device="cpu")
    values = torch.full(indices.shape, -torch.inf, dtype=torch.float64, device="cpu")
    for at, scores in score_rows(a):
        best = descending(scores.float())[: a.topk]
        indices[at][: len(best)] = best
        values[at][: len(best)] = scores[best]
    indices, values = (each.view(*a.query.shape[:-2], heads, a.topk) for each in (indices, values))
    if op in WITHOUT_VALUES:
        return indices
    return move(indices, a, 1), values.to(a.value_dtype) if a.return_value else _no_values(a)


def gradients(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """The gradients of npu_lightning_indexer's query, key and weights."""
    a = bind(GRAD, args, kwargs)
    tensors = (a.query, a.key, a.weights)
    query, key = (each.double().flatten(0, -3) for each in tensors[:2])
    weights, dy = a.weights.double().flatten(0, -2), a.dy.double().flatten(0, -3)
    found = [torch.zeros_like(each) for each in (query, key, weights)]
    group = query.shape[1] // key.shape[1]
    for row, slots in visible_keys(a):
        for n, listed in enumerate(a.sparse_indices.flatten(0, -3)[row].long()):
            heads, chosen = slice(n * group, (n + 1) * group), slots[listed[listed >= 0]]
            dots = query[row, heads] @ key[chosen, n].T
            d_scores = dy[row, n][listed >= 0]
            d_dots = weights[row, heads, None] * d_scores * (dots > 0)
            found[0][row, heads] = d_dots @ key[chosen, n]
            found[1][:, n].index_add_(0, chosen, d_dots.T @ query[row, heads])
            found[2][row, heads] = torch.relu(dots) @ d_scores
    return tuple(g.view(t.shape).to(t.dtype) for g, t in zip(found, tensors, strict=True))


def bind(op: str, args: Any, kwargs: Any) -> SimpleNamespace:
    """The arguments of a call of any of the ops, by the names of npu_quant_lightning_indexer_v2."""
    given = bind_arguments(contract(op), args, kwargs)
    if op == V2:
        given |= {"query": given["q"], "key": given["k"], "weights": given["w"]}
    elif op != QUANT_V2:
        given |= as_second_version(given)
    scales = {
        f"{name}_dequant_scale": torch.ones(given[name].shape[:-1], device="cpu")
        for name in ("query", "key")
    }
    dtype = _VALUES.get(op, given["query"].dtype)
    return SimpleNamespace(**scales | given, value_dtype=dtype)


def as_second_version(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the second version for arguments of the first, or of the gradient."""
    layout = given.get("layout")
    of_queries, of_keys = (layout or given[f"layout_{name}"] for name in ("query", "key"))
    queries, keys = (given[f"actual_seq_lengths_{name}"] for name in ("query", "key"))
    is_tnd, are_keys_tnd = of_queries == "TND", of_keys == "TND"
    most = given["query"].shape[1]
    return {
        "cu_seqlens_q": _from_0(queries) if is_tnd else None,
        "cu_seqlens_k": _from_0(keys) if are_keys_tnd else None,
        "seqused_q": None if is_tnd or queries is None else queries.clamp(max=most),
        "seqused_k": None if are_keys_tnd else keys,
        "block_table": given.get("block_table"),
        "layout_q": of_queries,
        "layout_k": "PA_BBND" if of_keys == "PA_BSND" else of_keys,
        "mask_mode": 0 if layout else given["sparse_mode"],
        "topk": given.get("sparse_count"),
        "return_value": given.get("return_value", 0),
        "cmp_ratio": 1,
        "cmp_residual_k": None,
        "output_idx_offset": None,
    }


def _from_0(sums: Tensor) -> Tensor:
    return torch.nn.functional.pad(sums, (1, 0))


def visible_keys(a: SimpleNamespace) -> Iterator[tuple[int, Tensor]]:
    """Every query token that sees a key, and the slots of these keys: their places among all keys.

    Token s of S sees key c if c < floor((L * cmp_ratio + residual - S + s + 1) / cmp_ratio), where
    the sequence has L keys: "create_mask" of lightning_indexer_v2_golden.py in CANN's
    ops-transformer.
    """
    for b, (start, rows, first, tokens) in enumerate(_sequences(a)):
        slots = torch.arange(first, first + tokens, device="cpu")
        if a.layout_k == "PA_BBND":
            size, positions = a.key.shape[1], torch.arange(tokens, device="cpu")
            slots = a.block_table[b].long()[positions // size] * size + positions % size
        residual = 0 if a.cmp_residual_k is None else int(a.cmp_residual_k[b])
        for s in range(rows):
            seen = tokens
            if a.mask_mode == 3:
                seen = max((tokens * a.cmp_ratio + residual - rows + s + 1) // a.cmp_ratio, 0)
            if seen > 0:
                yield start + s, slots[:seen]


def _sequences(a: SimpleNamespace) -> Iterator[list[int]]:
    """The first query token of each sequence, their number, its first key, and their number."""
    batch = len(a.cu_seqlens_q) - 1 if a.layout_q == "TND" else len(a.query)
    for b in range(batch):
        found: list[int] = []
        for tensor, sums, used in (
            (a.query, a.cu_seqlens_q, a.seqused_q),
            (a.key, a.cu_seqlens_k, a.seqused_k),
        ):
            size = tensor.shape[1]
            first, last = (b * size, (b + 1) * size) if sums is None else sums[b : b + 2].tolist()
            found += [first, last - first if used is None else int(used[b])]
        yield found


def score_rows(a: SimpleNamespace) -> Iterator[Row]:
    """The scores of every row that sees a key."""
    query, key = (each.double().flatten(0, -3) for each in (a.query, a.key))
    scales, of_keys = (
        each.double().flatten(0, -2) for each in (a.query_dequant_scale, a.key_dequant_scale)
    )
    weights = a.weights.double().flatten(0, -2)
    group = query.shape[1] // key.shape[1]
    for row, slots in visible_keys(a):
        for n in range(key.shape[1]):
            heads = slice(n * group, (n + 1) * group)
            dots = query[row, heads] @ key[slots, n].T
            dots = scales[row, heads, None] * of_keys[slots, n] * dots
            yield (row, n), (weights[row, heads, None] * torch.relu(dots)).sum(0)


def _no_values(a: SimpleNamespace) -> Tensor:
    return torch.empty(0, dtype=a.value_dtype, device="cpu")


def values_of(indices: Tensor, a: SimpleNamespace) -> Tensor:
    """The scores of the keys at positions without an offset, -inf for -1; [0] if not wanted."""
    if not a.return_value:
        return _no_values(a)
    values = torch.full(indices.shape, -torch.inf, dtype=torch.float64, device="cpu")
    by_row, of_rows = indices.flatten(0, -3), values.flatten(0, -3)
    for at, scores in score_rows(a):
        chosen = by_row[at].long()
        chosen = chosen[chosen >= 0]
        of_rows[at][: len(chosen)] = scores[chosen]
    return values.to(a.value_dtype)


def move(indices: Tensor, a: SimpleNamespace, sign: int) -> Tensor:
    """The positions with the offsets added, or subtracted."""
    if a.output_idx_offset is None:
        return indices
    offsets = a.output_idx_offset.int()[..., None] * sign
    return indices.where(indices == -1, indices + offsets)


def descending(scores: Tensor) -> Tensor:
    """Positions from the highest score to the lowest, equal ones ascending, NaN behind -inf."""
    nan = scores.isnan()
    order = scores.where(~nan, -torch.inf).argsort(descending=True, stable=True)
    return order[nan[order].int().argsort(stable=True)]
