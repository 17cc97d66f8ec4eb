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
    """A refusal: this op has no converter to the operator of CANN."""
    from custom_pypto_blocks.ge_steps import without_operator

    return {OP: without_operator(OP)}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterator[SampleInput]]]:
    """Calls of each form of x, weight and group_list."""
    return {OP: _samples}


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """Products in fp64."""
    return {OP: Reference(reference)}


def _fake(*args: Any, **kwargs: Any) -> list[Tensor]:
    from custom_pypto.core import contract
    from custom_pypto.core.contracts import bind_arguments
    from custom_pypto.core.contracts.evaluation import Evaluation

    given = bind_arguments(contract(OP), args, kwargs)
    Evaluation(contract(OP), given).run_checks()
    x, weight = given["x"], given["weight"]
    if given["group_type"] == 0:
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
        *rows, others = x[0].split([*counts.tolist(), rest])
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
    for dtype, number in ((torch.bfloat16, 15), (torch.float16, 5), (torch.float32, 6)):
        name = str(dtype).removeprefix("torch.")
        bias_dtype = torch.float16 if dtype == torch.float16 else torch.float32
        for rows, resized in (((3, 0, 9), (30, 2, 20)), ((70, 1, 0), (8, 2, 60))):
            calls = (_call(each, 40, 24, device, dtype) for each in (rows, resized))
            one, other = (SampleInput(call[:2], call[2]) for call in calls)
            yield SampleInput(one.args, one.kwargs, f"{name}_{rows[0]}", resized=other)
        (x, (weight,), options) = _call((2, 5, 1), 40, 24, device, dtype)
        bias = torch.randn(3, 24, generator=_generator(), device="cpu").to(device, bias_dtype)
        yield SampleInput((x, [weight]), {**options, "bias": [bias]}, f"{name}_bias")
        options = {**options, "bias": list(bias), "output_dtype": number}
        yield SampleInput((x, list(weight)), options, f"{name}_list_of_weights")
        listed = list(x[0].split([2, 5, 1]))
        for group_list in (None, options["group_list"]):
            options = {"split_item": 2, "group_type": 0, "group_list": group_list}
            name_of_list = "without" if group_list is None else "with"
            yield SampleInput((listed, list(weight)), options, f"{name}_lists_{name_of_list}")
        separate = [
            torch.randn(*shape, generator=_generator(), device="cpu").to(device, dtype)
            for shape in ((2, 3, 40), (5, 1, 16))
        ]
        weights = [weight[0], weight[1, :16, :9]]
        yield SampleInput((separate, weights), {"group_type": -1}, f"{name}_separate")
    for dtype in (torch.bfloat16, torch.float16):
        for packed, groups in ((1, ()), (8, ()), (8, (2,))):
            name = f"{str(dtype).removeprefix('torch.')}_int{8 if packed == 1 else 4}_{len(groups)}"
            yield _quantised_call((1, 9, 0, 4), packed, groups, device, dtype, name)
    for name, rows, depth, columns in (
        ("one_large", (0, 300, 3), 128, 260),
        ("many_large", (6, 0, 40, 1, 17, 0, 0, 2), 700, 130),
        ("no_row", (0, 0), 8, 3),
        ("no_column", (2, 1), 8, 0),
        ("no_number", (2, 1), 0, 4),
    ):
        if device != "cpu" and name.startswith("no_"):
            continue  # CANN takes no empty tensors.
        call = _call(rows, depth, columns, device, torch.float16)
        yield SampleInput(call[:2], call[2], name)
    x, weight, options = _call((2, 3), 16, 8, device, torch.bfloat16)
    # CANN wants all rows in groups.
    options["group_list"] = torch.tensor([2, 2 if device == "cpu" else 3], device=device)
    yield SampleInput((x, [weight[0].contiguous()]), {**options, "group_list_type": 1}, "counts")


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _call(
    rows: tuple[int, ...], depth: int, columns: int, device: str, dtype: torch.dtype
) -> tuple[list[Tensor], list[Tensor], dict[str, Any]]:
    x = torch.randn(sum(rows), depth, generator=_generator(), device="cpu")
    weight = torch.randn(len(rows), columns, depth, generator=_generator(), device="cpu")
    weight /= max(1, depth) ** 0.5
    group_list = torch.tensor(rows, device="cpu").cumsum(0).to(device)
    options = {"group_list": group_list, "split_item": 2, "group_type": 0}
    weight = weight.to(device, dtype).transpose(1, 2)
    return [x.to(device, dtype)], [weight], options


def _quantised_call(
    rows: tuple[int, ...],
    packed: int,
    groups: tuple[int, ...],
    device: str,
    dtype: torch.dtype,
    name: str,
) -> SampleInput:
    """Weights of int8, or of int4 where `packed` is 8."""
    x, _, options = _call(rows, 64, 24, device, dtype)
    kind = torch.int8 if packed == 1 else torch.int32
    limits = torch.iinfo(kind)
    size = (len(rows), 24, 64 // packed)
    weight = torch.randint(limits.min, limits.max, size, generator=_generator(), device="cpu")
    scale, offset = torch.rand(2, len(rows), *groups, 24, generator=_generator(), device="cpu")
    scale /= 1000 if packed == 1 else 50
    options |= {
        "antiquant_scale": [scale.to(device, dtype)],
        "antiquant_offset": [(8 * offset).to(device, dtype)],
    }
    weights = [weight.to(device, kind).transpose(1, 2)]
    if not groups:
        return SampleInput((x, weights), options, name)
    # As lists of one tensor for each group.
    bias = torch.ones(len(rows), 24, device=device)
    options["bias"] = [bias.to(torch.float16 if dtype == torch.float16 else torch.float32)]
    options |= {
        key: list(options[key][0]) for key in ("antiquant_scale", "antiquant_offset", "bias")
    }
    return SampleInput((x, list(weights[0])), options, name)
