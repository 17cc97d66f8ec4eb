"""The derivative of npu_sparse_flash_mla: what its backward keeps and calls."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_FORWARD_ONLY = ("ori_block_table", "cmp_block_table", "topk_value_mode", "return_softmax_lse")


def setup_context(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
) -> None:
    """Keep arguments and results. The log-sum-exp has no gradient."""
    given = {"q": inputs[0], **keyword_only_inputs}
    ctx.names = [name for name, each in given.items() if isinstance(each, Tensor)]
    ctx.save_for_backward(*(given[name] for name in ctx.names), *output)
    ctx.options = {n: each for n, each in given.items() if n not in ctx.names}
    ctx.mark_non_differentiable(output[1])


def backward(ctx: Any, d_out: Tensor, d_lse: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of q, ori_kv and cmp_kv, and in the place of the schema of sinks."""
    del d_lse
    *saved, out, lse = ctx.saved_tensors
    given = {**ctx.options, **dict(zip(ctx.names, saved, strict=True))}
    q, ops = given.pop("q"), torch.ops.custom_pypto
    if not given["return_softmax_lse"]:
        _, lse = ops.npu_sparse_flash_mla(q, **{**given, "return_softmax_lse": True})
    pages = {}
    if given["layout_kv"] == "PA_BBND":
        kept = {n: given[n] for n in ("ori_kv", "cmp_kv") if given[n] is not None}
        pages = {
            n: (kv, _blocks(kv, given[n.replace("kv", "block_table")])) for n, kv in kept.items()
        }
        given |= _without_pages(pages, given["layout_q"])
    options = {name: each for name, each in given.items() if name not in _FORWARD_ONLY}
    # CANN's kernel of gradients has other metadata, which Atlas A2 and A3 do not take.
    options["metadata"] = None
    dq, dori_kv, dcmp_kv, dsinks, _, _ = ops.npu_sparse_flash_mla_grad(
        q, d_out.contiguous(), out, lse, **options
    )
    gradients = {"ori_kv": dori_kv, "cmp_kv": dcmp_kv, "sinks": dsinks}
    for name, (kv, table) in pages.items():
        found = gradients[name].view(table.numel(), *kv.shape[1:])
        gradients[name] = torch.zeros_like(kv).index_add(0, table.flatten(), found)
    schema = ops.npu_sparse_flash_mla.default._schema
    keyword_only = [each.name for each in schema.arguments if each.kwarg_only]
    return dq, *(gradients.get(name) if name in ctx.names else None for name in keyword_only)


def _blocks(kv: Tensor, table: Tensor) -> Tensor:
    """The block table, of no columns for a cache of no blocks; what is not needed is any number."""
    return table.long()[:, : None if kv.shape[0] else 0].clamp(0, max(kv.shape[0] - 1, 0))


def _without_pages(pages: dict[str, tuple[Tensor, Tensor]], layout: str) -> dict[str, Any]:
    """The arguments with the same rows, those of a row of the block table for each sequence."""
    changed: dict[str, Any] = {"layout_kv": layout}
    for name, (kv, table) in pages.items():
        rows = kv[table].flatten(1, 2)
        if layout == "TND":
            ends = torch.arange(len(rows) + 1, dtype=torch.int32, device=rows.device)
            changed[f"cu_seqlens_{name}"] = ends * rows.shape[1]
            rows = rows.flatten(0, 1)
        changed[name] = rows
    return changed
