"""The op npu_weight_quant_batchmatmul: its reference, and samples beside those from ops.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from custom_pypto_plugin import Reference, SampleInput, hookimpl
from torch import Tensor

from .int4 import pack_int4 as pack_int4
from .int4 import to_signed as to_signed
from .int4 import unpack_awq as unpack_awq
from .int4 import unpack_int4 as unpack_int4
from .int4 import unpack_unsigned as unpack_unsigned
from .ops import *


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """The product with the weight that the integers stand for."""
    return {"npu_weight_quant_batchmatmul": Reference(_reference)}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterator[SampleInput]]]:
    """Calls with groups, which are seldom drawn, and work for more than one thread."""
    return {"npu_weight_quant_batchmatmul": _samples}


def _reference(
    x: Tensor,
    weight: Tensor,
    antiquant_scale: Tensor,
    antiquant_offset: Tensor | None = None,
    quant_scale: None = None,
    quant_offset: None = None,
    bias: Tensor | None = None,
    antiquant_group_size: int = 0,
    inner_precise: int = 0,
    weight_dtype: None = None,
) -> Tensor:
    del quant_scale, quant_offset, inner_precise, weight_dtype
    rows = unpack_int4(weight.t().contiguous()) if weight.dtype == torch.int32 else weight.t()

    def for_numbers(given: Tensor) -> Tensor:
        of_groups = given.double().reshape(given.shape if given.dim() == 2 else (1, -1))
        if antiquant_group_size:
            of_groups = of_groups.repeat_interleave(antiquant_group_size, 0)[: rows.shape[1]]
        return of_groups.t()

    numbers = rows.double()
    if antiquant_offset is not None:
        numbers = numbers + for_numbers(antiquant_offset)
    result: Tensor = x.double() @ (numbers * for_numbers(antiquant_scale)).t()
    if bias is not None:
        result = result + bias.flatten().double()
    return result.to(x.dtype)


def _samples(device: str) -> Iterator[SampleInput]:
    dtypes = [torch.bfloat16, torch.float16]
    dtypes += [torch.float32] if device == "cpu" else []  # CANN has none
    for dtype in dtypes:
        name = str(dtype).removeprefix("torch.")
        for bits, group in ((8, 0), (4, 64)):
            call, other = (
                SampleInput(_call(rows, 168, columns, group, bits, dtype, device))
                for rows, columns in ((5, 20), (9, 33))
            )
            yield SampleInput(call.args, name=f"{name}_int{bits}", resized=other)
    for rows, depth, columns in ((1, 1048, 700), (100, 320, 130)):
        for bits in (8, 4):
            args = _call(rows, depth, columns, 32, bits, torch.bfloat16, device)
            yield SampleInput(args, name=f"{rows}_rows_large_int{bits}")
            yield SampleInput((*args[:3], *[None] * 4, 32), name=f"{rows}_rows_of_integers{bits}")


def _call(
    rows: int, depth: int, columns: int, group: int, bits: int, dtype: torch.dtype, device: str
) -> tuple[Tensor | int | None, ...]:
    random = torch.Generator().manual_seed(0)
    most = 2 ** (bits - 1)
    numbers = torch.randint(-most, most, (columns, depth), generator=random, device="cpu")
    weight = numbers.to(torch.int8) if bits == 8 else pack_int4(numbers)
    groups = -(-depth // group) if group else 1
    scale = torch.rand(groups, columns, generator=random, device="cpu") / most
    offset = torch.randint(-most, most, (groups, columns), generator=random, device="cpu")
    x = torch.randn(rows, depth, generator=random, device="cpu")
    bias = torch.randn(columns, generator=random, device="cpu")
    of_bias = torch.float16 if dtype == torch.float16 else torch.float32
    given = (x.to(device, dtype), weight.to(device).t())
    scales = (each.to(device, dtype) for each in (scale, offset))
    return (*given, *scales, None, None, bias.to(device, of_bias), group)
