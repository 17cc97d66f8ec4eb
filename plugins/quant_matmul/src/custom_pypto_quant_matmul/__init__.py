"""The ops npu_quant_matmul and npu_dynamic_quant: what ops.toml and the kernels do not give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from custom_pypto_plugin import SampleInput, hookimpl
from torch import Tensor

from .ops import *

_INT8, _INT32, _FLOAT16, _BFLOAT16 = 1, 3, 5, 15  # as ops.toml has them
_DTYPES = {_INT32: torch.int32, _FLOAT16: torch.float16, _BFLOAT16: torch.bfloat16}


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., Tensor]]:
    """The result has the dtype that a number names."""
    return {"npu_quant_matmul": _empty_result}


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The node of npu_quant_matmul, whose dtype has another number in a graph."""
    from .converter import convert_quant_matmul

    return {"npu_quant_matmul": convert_quant_matmul}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterator[SampleInput]]]:
    """Calls as engines make them, with weights [N, K] seen as [K, N]."""
    return {"npu_quant_matmul": _samples, "npu_dynamic_quant": _rows}


def _rows(device: str) -> Iterator[SampleInput]:
    random = torch.Generator().manual_seed(0)
    for dtype in (torch.bfloat16, torch.float16):
        given, other = (
            SampleInput(
                (torch.randn(size, generator=random, device="cpu").to(device, dtype),),
                {
                    "smooth_scales": torch.rand(size[1], generator=random, device="cpu").to(
                        device, dtype
                    )
                },
            )
            for size in ((3, 70), (5, 33))
        )
        name = str(dtype).removeprefix("torch.")
        yield SampleInput(given.args, given.kwargs, name, other)
        yield SampleInput(given.args, name=f"{name}_alone", resized=SampleInput(other.args))


def _empty_result(
    x1: Tensor, x2: Tensor, scale: Tensor, *, output_dtype: int | None = None, **options: Any
) -> Tensor:
    dtype = _DTYPES.get(output_dtype or _INT8, torch.int8)
    return x1.new_empty((*x1.shape[:-1], x2.shape[-1]), dtype=dtype)


def _samples(device: str) -> Iterator[SampleInput]:
    floats = {"bias": torch.float32}
    # NPUs take no empty tensors, and int8 results have scales of 19 bits and offsets of 9.
    for name, rows, depth, columns, options in (
        ("bfloat16", (5,), 64, 24, {"output_dtype": _BFLOAT16, "pertoken_scale": None}),
        ("float16", (2, 3), 33, 9, {"output_dtype": _FLOAT16, "pertoken_scale": None, **floats}),
        ("int32", (7,), 40, 17, {"output_dtype": _INT32, "bias": torch.int32}),
        ("int8", (4,), 70, 20, {"offset": None, "bias": torch.int32}),
        ("one_scale", (3,), 16, 8, {"output_dtype": _BFLOAT16, "bias": torch.bfloat16}),
        ("many_rows_large", (120,), 1100, 66, {"output_dtype": _BFLOAT16, "pertoken_scale": None}),
        ("no_row", (0,), 8, 3, {}),
        ("no_column", (2,), 8, 0, {"output_dtype": _BFLOAT16}),
        ("no_sum", (2,), 0, 4, {"output_dtype": _BFLOAT16, **floats}),
    ):
        if device == "cpu" or not name.startswith("no_"):
            calls = (
                _call((*rows[:-1], rows[-1] + more), depth, columns, device, options, name)
                for more in (0, 2)
            )
            given, other = (SampleInput(*each) for each in calls)
            yield SampleInput(given.args, given.kwargs, name, None if name == "no_row" else other)


def _call(
    rows: tuple[int, ...], depth: int, columns: int, device: str, options: dict[str, Any], name: str
) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
    random = torch.Generator().manual_seed(0)

    def integers(*shape: int, most: int = 127) -> Tensor:
        return torch.randint(-most - 1, most + 1, shape, generator=random, device="cpu").to(device)

    given = integers(*rows, depth).to(torch.int8)
    weight = integers(columns, depth).to(torch.int8).t()
    scale = integers(1 if name == "one_scale" else columns, most=500) / 2**16
    made = {
        "pertoken_scale": integers(rows[-1], most=500) / 2**16,
        "offset": integers(columns, most=100).float(),
        "bias": integers(columns, most=1000).to(options.get("bias")),
    }
    kwargs = {key: made.get(key, value) for key, value in options.items()}
    return (given, weight, scale.bfloat16() if name == "one_scale" else scale), kwargs
