"""Sample calls of the ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor


def products(device: str) -> Iterator[SampleInput]:
    """Each dtype of result, scale and bias; few rows and many; work for more than one thread."""
    for name, rows, depth, columns, options in (
        ("bfloat16", (5,), 64, 24, {"output_dtype": 15, "pertoken_scale": True}),
        ("float16", (2, 3), 33, 9, {"output_dtype": 5, "pertoken_scale": True, "bias": "float32"}),
        ("int32", (7,), 40, 17, {"output_dtype": 3, "bias": "int32"}),
        ("int8", (4,), 70, 20, {"offset": True, "bias": "int32"}),
        ("one_scale", (3,), 16, 8, {"output_dtype": 15, "one": True, "bias": "bfloat16"}),
        ("many_rows_large", (100,), 1100, 66, {"output_dtype": 15, "pertoken_scale": True}),
    ):
        given = _product(rows, depth, columns, device, **options)
        resized = _product((*rows[:-1], rows[-1] + 2), depth, columns, device, **options)
        yield SampleInput(*given, name=name, resized=SampleInput(*resized))
    if device == "cpu":  # CANN takes no empty tensors
        for name, sizes in {
            "no_row": (0, 8, 3),
            "no_column": (2, 8, 0),
            "no_sum": (2, 0, 4),
        }.items():
            given = _product((sizes[0],), *sizes[1:], device, output_dtype=15, bias="float32")
            yield SampleInput(*given, name=name)


def quantised(device: str) -> Iterator[SampleInput]:
    """Each dtype, with and without factors; a row of zeros."""
    random = torch.Generator().manual_seed(0)
    dtypes = [torch.bfloat16, torch.float16] + ([torch.float32] if device == "cpu" else [])
    for dtype in dtypes:
        for shape, other in (((3, 37), (6, 37)), ((2, 3, 64), (2, 5, 64)), ((300, 520), (90, 520))):
            numbers = [
                torch.randn(each, generator=random, device="cpu").to(device, dtype)
                for each in (shape, other, shape[-1:])
            ]
            numbers[0].flatten(0, -2)[1] = 0
            name = f"{str(dtype).removeprefix('torch.')}_{len(shape)}d_{shape[-1]}"
            for options in ({}, {"smooth_scales": numbers[2]}):
                yield SampleInput(
                    (numbers[0],),
                    options,
                    name=f"{name}_smooth" if options else name,
                    resized=SampleInput((numbers[1],), options),
                )


def _product(
    rows: tuple[int, ...],
    depth: int,
    columns: int,
    device: str,
    *,
    one: bool = False,
    pertoken_scale: bool = False,
    offset: bool = False,
    bias: str | None = None,
    output_dtype: int | None = None,
) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
    random = torch.Generator().manual_seed(0)

    def integers(*shape: int, most: int = 127) -> Tensor:
        return torch.randint(-most - 1, most + 1, shape, generator=random, device="cpu").to(device)

    # CANN encodes a scale without pertoken_scale in 19 bits, its offset in 9.
    def scales(size: int) -> Tensor:
        return integers(size, most=511).abs().float() / 2**16

    given = integers(*rows, depth).to(torch.int8)
    weight = integers(columns, depth).to(torch.int8)
    scale = scales(1 if one else columns)
    options: dict[str, Any] = {} if output_dtype is None else {"output_dtype": output_dtype}
    if pertoken_scale:
        options["pertoken_scale"] = scales(rows[-1])
    if offset:
        options["offset"] = integers(columns, most=100).float()
    if bias is not None:
        dtype = getattr(torch, bias)
        options["bias"] = integers(columns, most=1000).to(dtype)
    return (given, weight.t(), scale.bfloat16() if one else scale), options
