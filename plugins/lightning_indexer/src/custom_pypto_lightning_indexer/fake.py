"""The op's shape rule, with symbolic sizes.

It refuses what can be refused without looking at sizes, in the kernel's words, so that a mistake
shows while a graph is traced. Sizes and values are left to the kernel: a comparison here would fix
a symbolic size.
"""

from __future__ import annotations

import torch

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def lightning_indexer(
    query: torch.Tensor,
    key: torch.Tensor,
    weights: torch.Tensor,
    *,
    actual_seq_lengths_query: torch.Tensor | None = None,
    actual_seq_lengths_key: torch.Tensor | None = None,
    block_table: torch.Tensor | None = None,
    layout_query: str = "BSND",
    layout_key: str = "PA_BSND",
    sparse_count: int = 2048,
    sparse_mode: int = 3,
) -> torch.Tensor:
    """An int32 tensor [B, S1, N2, sparse_count], or [T, N2, sparse_count] for layout_query TND.

    Raises:
        RuntimeError: a layout, mode, rank, dtype or device that the kernel refuses too, or a tensor
            that the layout needs is missing.
    """
    _check(
        layout_query in ("BSND", "TND"),
        "layout_query",
        f"must be 'BSND' or 'TND', got '{layout_query}'",
    )
    _check(
        layout_key in ("PA_BSND", "BSND", "TND"),
        "layout_key",
        f"must be 'PA_BSND', 'BSND' or 'TND', got '{layout_key}'",
    )
    _check(
        layout_key in ("PA_BSND", layout_query),
        "layout_key",
        f"must be 'PA_BSND' or equal layout_query ('{layout_query}'), got '{layout_key}'",
    )
    # Of a symbolic count nothing is known, and asking would fix it.
    _check(
        not isinstance(sparse_count, int) or sparse_count >= 1,
        "sparse_count",
        f"must be at least 1, got {sparse_count}",
    )
    _check(sparse_mode in (0, 3), "sparse_mode", f"must be 0 or 3, got {sparse_mode}")
    _check_rank("query", query, 3 if layout_query == "TND" else 4)
    _check_rank("key", key, 3 if layout_key == "TND" else 4)
    _check_rank("weights", weights, query.dim() - 1)
    _check(query.dtype in _DTYPES, "query", f"must be one of {_DTYPES}, got {query.dtype}")
    _check_same("key", "dtype", key.dtype, query.dtype)
    if weights.dtype != torch.float32:
        _check_same("weights", "dtype", weights.dtype, query.dtype)
    _check(
        block_table is None or layout_key == "PA_BSND",
        "block_table",
        f"must be None unless layout_key is 'PA_BSND'; layout_key is '{layout_key}'",
    )
    integers = {
        "actual_seq_lengths_query": (actual_seq_lengths_query, 1, layout_query == "TND"),
        "actual_seq_lengths_key": (actual_seq_lengths_key, 1, layout_key != "BSND"),
        "block_table": (block_table, 2, layout_key == "PA_BSND"),
    }
    _check_same("key", "device", key.device, query.device)
    _check_same("weights", "device", weights.device, query.device)
    for name, (tensor, rank, required) in integers.items():
        if tensor is None:
            layouts = f"layout_query '{layout_query}' and layout_key '{layout_key}'"
            _check(not required, name, f"is required with {layouts}, got None")
            continue
        _check_rank(name, tensor, rank)
        _check(
            tensor.dtype in (torch.int32, torch.int64),
            name,
            f"must be int32 or int64, got {tensor.dtype}",
        )
        _check_same(name, "device", tensor.device, query.device)
    return query.new_empty((*query.shape[:-2], key.shape[-2], sparse_count), dtype=torch.int32)


def _check(condition: bool, argument: str, message: str) -> None:
    if not condition:
        raise RuntimeError(f"npu_lightning_indexer_pto: argument '{argument}' {message}")


def _check_rank(argument: str, tensor: torch.Tensor, rank: int) -> None:
    _check(tensor.dim() == rank, argument, f"must be {rank}-D, got {tensor.dim()}-D")


def _check_same(argument: str, what: str, actual: object, expected: object) -> None:
    _check(
        actual == expected,
        argument,
        f"must have the {what} of 'query' ({expected}), got {actual}",
    )
