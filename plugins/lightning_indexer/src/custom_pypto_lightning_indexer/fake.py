"""The op's shape rule, with symbolic sizes.

It refuses what can be refused without looking at sizes, in the kernel's words, so that a mistake
shows while a graph is traced. Sizes and values are left to the kernel: a comparison here would fix
a symbolic size.
"""

from __future__ import annotations

import torch

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
_QUERY_DIMENSIONS = {"BSND": "[B, S1, N1, D]", "TND": "[T, N1, D]"}
_KEY_DIMENSIONS = {
    "PA_BSND": "[blocks, block_size, N2, D]",
    "BSND": "[B, S2, N2, D]",
    "TND": "[T2, N2, D]",
}
# What a layout of the query (the first) or the key needs, and for what.
_REQUIRED = {
    ("actual_seq_lengths_query", "TND"): (
        "layout_query 'TND': the prefix sums of the sequences' query lengths"
    ),
    ("actual_seq_lengths_key", "PA_BSND"): "layout_key 'PA_BSND': one length per sequence",
    ("actual_seq_lengths_key", "TND"): (
        "layout_key 'TND': the prefix sums of the sequences' key lengths"
    ),
    ("block_table", "PA_BSND"): "layout_key 'PA_BSND'",
}


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
    _check_rank(
        "query",
        query,
        3 if layout_query == "TND" else 4,
        f" ({_QUERY_DIMENSIONS[layout_query]} for layout_query '{layout_query}')",
    )
    _check_rank(
        "key",
        key,
        3 if layout_key == "TND" else 4,
        f" ({_KEY_DIMENSIONS[layout_key]} for layout_key '{layout_key}')",
    )
    weights_shape = " (query's shape without its last dimension)"
    _check_rank("weights", weights, query.dim() - 1, weights_shape)
    _check(
        query.dtype in _DTYPES,
        "query",
        f"must be bfloat16, float16 or float32, got {_name(query.dtype)}",
    )
    _check_dtype("key", key, query)
    if weights.dtype != torch.float32:
        _check_dtype("weights", weights, query)
    _check(
        block_table is None or layout_key == "PA_BSND",
        "block_table",
        f"must be None unless layout_key is 'PA_BSND'; layout_key is '{layout_key}'",
    )
    _check_device("key", key, query)
    _check_device("weights", weights, query)
    for name, tensor, rank, layout in (
        ("actual_seq_lengths_query", actual_seq_lengths_query, 1, layout_query),
        ("actual_seq_lengths_key", actual_seq_lengths_key, 1, layout_key),
        ("block_table", block_table, 2, layout_key),
    ):
        if tensor is None:
            required = _REQUIRED.get((name, layout))
            _check(required is None, name, f"is required with {required}, got None")
            continue
        _check_rank(name, tensor, rank, "")
        _check(
            tensor.dtype in (torch.int32, torch.int64),
            name,
            f"must be int32 or int64, got {_name(tensor.dtype)}",
        )
        _check_device(name, tensor, query)
    return query.new_empty((*query.shape[:-2], key.shape[-2], sparse_count), dtype=torch.int32)


def _check(condition: bool, argument: str, message: str) -> None:
    if not condition:
        raise RuntimeError(f"npu_lightning_indexer_pto: argument '{argument}' {message}")


def _check_rank(argument: str, tensor: torch.Tensor, rank: int, meaning: str) -> None:
    given = f"{tensor.dim()}-D {list(tensor.shape)}"
    _check(tensor.dim() == rank, argument, f"must be {rank}-D{meaning}, got {given}")


def _check_dtype(argument: str, tensor: torch.Tensor, query: torch.Tensor) -> None:
    expected, given = _name(query.dtype), _name(tensor.dtype)
    message = f"must have the dtype of 'query' ({expected}), got {given}"
    _check(tensor.dtype == query.dtype, argument, message)


def _check_device(argument: str, tensor: torch.Tensor, query: torch.Tensor) -> None:
    message = f"must be on the device of 'query' ({query.device}), got {tensor.device}"
    _check(tensor.device == query.device, argument, message)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
