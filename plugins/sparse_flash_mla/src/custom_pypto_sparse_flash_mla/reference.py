"""The ops in plain PyTorch, token by token: slow, readable, independent of the kernels.

Everything is computed in fp32, or in fp64 if the queries are fp32 or fp64, and rounded once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from torch import Tensor

from .ops import METADATA_SIZE


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which the reference computes for queries of ``dtype``."""
    return torch.float64 if dtype in (torch.float32, torch.float64) else torch.float32


def _slots(given: dict[str, Any], kv: str, sequences: int) -> list[Tensor]:
    """The slot of each row of each sequence: its place in ``given[kv]`` with one row a slot."""
    name = kv.removesuffix("_kv")
    rows, used = given[f"{name}_kv"], given[f"seqused_{name}_kv"]
    if given["layout_kv"] == "TND":
        slots = [
            torch.arange(*ends, device="cpu")
            for ends in pairwise(given[f"cu_seqlens_{name}_kv"].tolist())
        ]
    elif given["layout_kv"] == "BSND":
        slots = [*torch.arange(rows.shape[0] * rows.shape[1], device="cpu").view(rows.shape[:2])]
    else:
        size, table = rows.shape[1], given[f"{name}_block_table"].long()
        slots = [*(table[..., None] * size + torch.arange(size, device="cpu")).flatten(1)]
    if used is not None:
        slots = [each[:length] for each, length in zip(slots, used.tolist(), strict=True)]
    assert len(slots) == sequences
    return slots


def _listed(given: dict[str, Any], name: str, row: int, begin: int, end: int) -> tuple[Tensor, Any]:
    """The rows [begin, end) that a query attends to, and their places among its indices if any."""
    indices, lengths = given[f"{name}_sparse_indices"], given[f"{name}_topk_length"]
    if indices is None:
        return torch.arange(max(begin, 0), max(begin, end, 0), device="cpu"), None
    listed = indices.flatten(0, -3)[row, 0].long()
    count = len(listed) if lengths is None else int(lengths.flatten()[row])
    places = torch.arange(count, device="cpu")
    chosen = listed[places]
    seen = (chosen >= max(begin, 0)) & (chosen < end)
    return chosen[seen], places[seen]


def visible(given: dict[str, Any]) -> Iterator[tuple[int, list[tuple[str, Tensor, Any]]]]:
    """For each query token, (its place, [("ori" or "cmp", slots, places among its indices)])."""
    q, ratio = given["q"], given["cmp_ratio"]
    if given["layout_q"] == "TND":
        starts = given["cu_seqlens_q"].tolist()
    else:
        starts = [b * q.shape[1] for b in range(q.shape[0] + 1)]
    counts = [end - start for start, end in pairwise(starts)]
    if given["seqused_q"] is not None:
        counts = given["seqused_q"].tolist()
    slots = {
        n: _slots(given, n, len(counts)) for n in ("ori", "cmp") if given[f"{n}_kv"] is not None
    }
    for b, count in enumerate(counts):
        length = {name: len(each[b]) for name, each in slots.items()}
        ori, cmp = length["ori"], length.get("cmp", 0)
        residual = given["cmp_residual_kv"]
        masked = ori
        if residual is not None:
            masked = cmp * ratio + int(residual[b])
        for s in range(count):
            t, left, right = ori - count + s + 1, given["ori_win_left"], given["ori_win_right"]
            begin, end = 0, ori
            if given["ori_mask_mode"] == 3:
                end = t
            elif given["ori_mask_mode"] == 4:
                begin = 0 if left == -1 else max(t - left - 1, 0)
                end = ori if right == -1 else min(t + right, ori)
            cmp_end = cmp
            if given["cmp_mask_mode"] == 3:
                cmp_end = min((masked - count + s + 1) // ratio, cmp)
            row, ends = starts[b] + s, {"ori": (begin, end), "cmp": (0, cmp_end)}
            parts = []
            for name, each in slots.items():
                chosen, places = _listed(given, name, row, *ends[name])
                parts.append((name, each[b][chosen], places))
            yield row, parts


def _keys(given: dict[str, Any], dtype: torch.dtype) -> dict[str, Tensor]:
    """The rows of ori_kv and cmp_kv, one a slot: [slots, D]."""
    rows = {n: given[f"{n}_kv"] for n in ("ori", "cmp") if given[f"{n}_kv"] is not None}
    return {name: each.flatten(0, -3)[:, 0].to(dtype) for name, each in rows.items()}


def sparse_flash_mla(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """``npu_sparse_flash_mla``: out as q, lse [B, 1, S, N] or [1, T, N], or a 0."""
    given = bind_arguments(contract("npu_sparse_flash_mla"), args, kwargs)
    q, dtype = given["q"], wide(given["q"].dtype)
    queries, keys = q.flatten(0, -3).to(dtype), _keys(given, dtype)
    sinks = None if given["sinks"] is None else given["sinks"].to(dtype)[:, None]
    out = torch.zeros_like(queries)
    lse = torch.full(queries.shape[:-1], -torch.inf, dtype=dtype, device="cpu")
    for row, parts in visible(given):
        seen = torch.cat([keys[name][slots] for name, slots, _ in parts])
        if len(seen) == 0:
            continue
        scores = queries[row] @ seen.T * given["softmax_scale"]
        if sinks is not None:
            scores = torch.cat((scores, sinks), -1)
        out[row] = scores.softmax(-1)[:, : len(seen)] @ seen
        lse[row] = scores.logsumexp(-1)
    out = out.to(q.dtype).reshape(q.shape)
    if not given["return_softmax_lse"]:
        return out, torch.zeros((), device="cpu")
    return out, lse.float().reshape(q.shape[:-1]).unsqueeze(-3)


def sparse_flash_mla_grad(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
    """``npu_sparse_flash_mla_grad``; the results of what is None are empty, [0]."""
    given = bind_arguments(contract("npu_sparse_flash_mla_grad"), args, kwargs)
    q: Tensor = given["q"]
    dtype = wide(q.dtype)
    queries, outer, attended = (
        given[n].flatten(0, -3).to(dtype) for n in ("q", "dout", "attn_out")
    )
    lse = given["softmax_lse"].reshape(queries.shape[:-1]).to(dtype)
    keys, heads = _keys(given, dtype), q.shape[-2]
    scale = q.shape[-1] ** -0.5 if given["softmax_scale"] is None else given["softmax_scale"]
    shared = (outer * attended).sum(-1)
    d_queries, d_keys = torch.zeros_like(queries), {n: torch.zeros_like(k) for n, k in keys.items()}
    d_sinks = torch.zeros(heads, dtype=dtype, device="cpu")
    means = {
        name: torch.zeros(given[f"{name}_sparse_indices"].shape, device="cpu").flatten(0, -3)
        for name in keys
        if given[f"{name}_sparse_indices"] is not None
    }
    for row, parts in visible(given):
        if not any(len(slots) for _, slots, _ in parts):
            continue
        for name, slots, places in parts:
            rows = keys[name][slots]
            weights = torch.exp(queries[row] @ rows.T * scale - lse[row, :, None])
            d_scores = weights * (outer[row] @ rows.T - shared[row, :, None]) * scale
            d_queries[row] += d_scores @ rows
            d_keys[name].index_add_(0, slots, d_scores.T @ queries[row] + weights.T @ outer[row])
            if places is not None:
                means[name][row, 0, places] = weights.mean(0).float()
        if given["sinks"] is not None:
            d_sinks -= torch.exp(given["sinks"].to(dtype) - lse[row]) * shared[row]

    found = {
        "q": d_queries,
        **{f"{name}_kv": d_keys.get(name) for name in ("ori", "cmp")},
        "sinks": d_sinks,
        **{f"{name}_sparse_indices": means.get(name) for name in ("ori", "cmp")},
    }

    def result(name: str, gradient: Any) -> Tensor:
        argument = given[name]
        if argument is None:
            return torch.zeros(0, dtype=q.dtype if "kv" in name else torch.float32, device="cpu")
        dtype = argument.dtype if argument.is_floating_point() else torch.float32
        made: Tensor = gradient.to(dtype).reshape(argument.shape)
        return made

    return tuple(result(*each) for each in found.items())


def sparse_flash_mla_metadata(*args: Any, **kwargs: Any) -> Tensor:
    """``npu_sparse_flash_mla_metadata`` on a CPU."""
    del args, kwargs
    return torch.zeros(METADATA_SIZE, dtype=torch.int32, device="cpu")
