"""The op npu_grouped_matmul: its fake, reference and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from custom_pypto_plugin import Reference, SampleInput, hookimpl
from torch import Tensor

from .ops import *

OP = "npu_grouped_matmul"


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., Any]]:
    """The fake: how many tensors are returned depends on group_type."""
    return {OP: _fake}


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The torchair converter; called once torchair is there."""
    from .converter import convert_grouped_matmul

    return {OP: convert_grouped_matmul}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterator[SampleInput]]]:
    """Calls of each form of x, weight and group_list."""
    return {OP: _samples}


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """Products in fp64."""
    return {OP: Reference(reference)}


def _fake(
    x: list[Tensor], weight: list[Tensor], *, group_type: int | None = None, **options: Any
) -> list[Tensor]:
    if group_type == 0:
        return [x[0].new_empty(sum(each.shape[0] for each in x), weight[0].shape[-1])]
    pairs = zip(x, weight, strict=True)
    return [each.new_empty(*each.shape[:-1], own.shape[-1]) for each, own in pairs]


def reference(x: list[Tensor], weight: list[Tensor], **options: Any) -> list[Tensor]:
    """The op's definition: each group of rows times its weight, plus its bias."""
    group_list, scale, offset, biases = (
        options.get(name) for name in ("group_list", "antiquant_scale", "antiquant_offset", "bias")
    )
    is_one = weight[0].dim() == 3
    weights = [each.double() for each in weight]
    if scale:
        weights = [
            _dequantise(each, scale[i], offset[i] if offset else None)
            for i, each in enumerate(weight)
        ]
    if is_one:
        weights = list(weights[0])
        biases = list(biases[0]) if biases else None
    rows = x
    if len(x) == 1 and group_list is not None:
        counts = group_list
        if options.get("group_list_type") != 1:
            counts = group_list.diff(prepend=group_list.new_zeros(1))
        rest = len(x[0]) - int(counts.sum())
        *rows, others = torch.split(x[0], [*counts.tolist(), rest])
    results = [
        (one.double() @ own + (biases[i].double() if biases else 0)).to(x[0].dtype)
        for i, (one, own) in enumerate(zip(rows, weights, strict=True))
    ]
    if options["group_type"] == -1:
        return results
    if rows is not x:
        results.append(others.new_zeros(len(others), results[0].shape[1]))
    return [torch.cat(results)]


def _dequantise(weight: Tensor, scale: Tensor, offset: Tensor | None) -> Tensor:
    """[.., K, N] from int8, or from int32 [.., K/8, N] which pack 8 of int4."""
    if weight.dtype == torch.int32:
        shifts = torch.arange(28, -1, -4, dtype=torch.int32, device="cpu")
        weight = (weight.unsqueeze(-2) << shifts.unsqueeze(-1) >> 28).flatten(-3, -2)

    def by_row(each: Tensor) -> Tensor:
        groups = each if each.dim() == weight.dim() else each.unsqueeze(-2)
        return groups.double().repeat_interleave(weight.shape[-2] // groups.shape[-2], -2)

    return (weight + (0 if offset is None else by_row(offset))) * by_row(scale)


def _samples(device: str) -> Iterator[SampleInput]:
    bf16, fp16, int8, int4 = torch.bfloat16, torch.float16, torch.int8, torch.int32
    for dtype in (bf16, fp16, torch.float32):
        name = str(dtype).removeprefix("torch.")
        for one, other in (((3, 0, 9), (30, 2, 20)), ((70, 1, 0), (8, 2, 60))):
            resized = SampleInput(*_call(other, device, dtype))
            yield SampleInput(*_call(one, device, dtype), f"{name}_{one[0]}", resized)
        (x, weight), options = _call((2, 5, 1), device, dtype, has_bias=True)
        yield SampleInput((x, weight), options, f"{name}_bias")
        if dtype != bf16:
            continue
        lists = {**options, "bias": list(options["bias"][0]), "output_dtype": dtype}
        yield SampleInput((x, list(weight[0])), lists, f"{name}_list_of_weights")
        x = list(torch.split(x[0], [2, 5, 1]))
        yield SampleInput((x, list(weight[0])), lists, f"{name}_lists")
        lists = {**lists, "group_list": None}
        yield SampleInput((x, list(weight[0])), lists, f"{name}_lists_alone")
        separate = [x[0].view(1, 2, 64), x[1][:, :16]], [weight[0][0], weight[0][1, :16, :9]]
        yield SampleInput(separate, {"group_type": -1}, f"{name}_separate")
    for dtype, kind, groups in (
        (bf16, int8, ()),
        (fp16, int8, ()),
        (bf16, int4, ()),
        (fp16, int4, (2,)),
    ):
        args, options = _call((1, 9, 0, 4), device, dtype, has_bias=True)
        depth = 64 if kind == int8 else 32
        stored = torch.randint(-128, 127, (4, 24, depth), generator=_generator(), device="cpu")
        stored = stored.to(device, int8).view(kind)
        scale, offset = torch.rand(2, 4, *groups, 24, generator=_generator(), device="cpu") / 50
        options["antiquant_scale"] = [scale.to(device, dtype)]
        options["antiquant_offset"] = [(99 * offset).to(device, dtype)]
        name = f"{dtype}_{'int8' if kind == int8 else 'int4'}".removeprefix("torch.")
        yield SampleInput((args[0], [stored.transpose(1, 2)]), options, name)
    for name, rows, depth, columns in (
        ("one_large", (0, 300, 3), 128, 260),
        ("many_large", (6, 0, 40, 1, 17, 0, 0, 2), 700, 130),
        # CANN takes no empty tensors.
        *([("no_row", (0, 0), 8, 3), ("no_column", (2, 1), 8, 0)] if device == "cpu" else []),
        *([("no_number", (2, 1), 0, 4)] if device == "cpu" else []),
    ):
        yield SampleInput(*_call(rows, device, fp16, depth, columns), name)
    (x, weight), options = _call((2, 3), device, bf16)
    # CANN wants all rows in groups.
    options["group_list"] = torch.tensor([2, 2 if device == "cpu" else 3], device=device)
    yield SampleInput((x, [weight[0].contiguous()]), {**options, "group_list_type": 1}, "counts")


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _call(
    rows: tuple[int, ...],
    device: str,
    dtype: torch.dtype,
    depth: int = 64,
    columns: int = 24,
    *,
    has_bias: bool = False,
) -> tuple[tuple[list[Tensor], list[Tensor]], dict[str, Any]]:
    shapes = ((sum(rows), depth), (len(rows), columns, depth), (len(rows), columns))
    x, weight, bias = (torch.randn(each, generator=_generator(), device="cpu") for each in shapes)
    weight = (weight / max(1, depth) ** 0.5).to(device, dtype).transpose(1, 2)
    group_list = torch.tensor(rows, device="cpu").cumsum(0).to(device)
    options = {"group_list": group_list, "split_item": 2, "group_type": 0}
    if has_bias:
        options["bias"] = [bias.to(device, dtype if dtype == torch.float16 else torch.float32)]
    return ([x.to(device, dtype)], [weight]), options
