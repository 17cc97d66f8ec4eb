"""The op npu_grouped_matmul: its fake, reference and samples, which ops.toml and kernels do not give."""

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
    group_list = options.get("group_list")
    weights, biases = (
        list(given[0]) if given and weight[0].dim() == 3 else given
        for given in (weight, options.get("bias"))
    )
    rows = x
    if len(x) == 1 and group_list is not None:
        counts = group_list
        if options.get("group_list_type") != 1:
            counts = group_list.diff(prepend=group_list.new_zeros(1))
        rest = len(x[0]) - int(counts.sum())
        *rows, others = x[0].split([*counts.tolist(), rest])
    results = [
        (one.double() @ own.double() + (biases[i].double() if biases else 0)).to(x[0].dtype)
        for i, (one, own) in enumerate(zip(rows, weights, strict=True))
    ]
    if options["group_type"] == -1:
        return results
    if rows is not x:
        results.append(others.new_zeros(len(others), results[0].shape[1]))
    return [torch.cat(results)]


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
