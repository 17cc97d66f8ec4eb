"""Seeded inputs of each op, by device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

from . import reference

_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
# Tokens, streams, columns: [T, n, D] and [B, S, n, D]; no multiples of a vector on a CPU. No two sizes
# that are not named alike are equal: torch would take them for one dynamic size.
_ON_CPU = {"tnd": (5, 4, 24), "bsnd": (2, 5, 6, 33), "streams_8": (7, 8, 17)}
_ON_NPU = {"tnd": (5, 4, 32), "bsnd": (2, 5, 6, 48), "streams_8": (7, 8, 16)}
_LARGE = (150, 4, 256)


def _sizes(device: str) -> Iterator[tuple[str, tuple[int, ...], torch.dtype]]:
    """Yield names, sizes and dtypes: all sizes, all dtypes, large, and on a CPU those of no NPU."""
    sizes = _ON_CPU if device == "cpu" else _ON_NPU
    for (name, each), (text, dtype) in zip(sizes.items(), _DTYPES.items(), strict=True):
        if device == "cpu" or dtype != torch.float32:
            yield f"{name}_{text}", each, dtype
        if dtype != torch.bfloat16:
            yield f"{name}_bfloat16", each, torch.bfloat16
    yield "large", _LARGE, torch.bfloat16
    if device == "cpu":
        yield "float64", (2, 4, 3), torch.float64
        yield "empty", (2, 0, 4, 3), torch.bfloat16


class _Maker:
    """Makes random tensors of one call, on a device."""

    def __init__(self, sizes: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
        self.tokens, self.n, self.columns = sizes[:-2], sizes[-2], sizes[-1]
        self.dtype = dtype
        self.number = torch.float64 if dtype == torch.float64 else torch.float32
        self.device = device
        self._generator = torch.Generator().manual_seed(0)

    def draw(self, *sizes: int, dtype: torch.dtype | None = None) -> Tensor:
        made = torch.randn(sizes, generator=self._generator, device="cpu", dtype=torch.float64)
        return made.to(self.device, dtype or self.number)

    def per_token(self, *sizes: int, dtype: torch.dtype | None = None) -> Tensor:
        return self.draw(*self.tokens, *sizes, dtype=dtype)

    def streams(self) -> Tensor:
        return self.per_token(self.n, self.columns, dtype=self.dtype)

    def layer(self) -> Tensor:
        return self.per_token(self.columns, dtype=self.dtype)


def _pre(make: _Maker, parts: int, with_gamma: bool) -> dict[str, Any]:
    rows = 2 * make.n + (parts - 2) * make.n**2
    return {
        "x": make.streams(),
        "phi": make.draw(rows, make.n * make.columns) / make.columns**0.5,
        "alpha": make.draw(parts),
        "bias": make.draw(rows),
        "gamma": make.draw(make.n, make.columns) if with_gamma else None,
    }


def _pre_samples(device: str) -> Iterator[SampleInput]:
    for number, (name, sizes, dtype) in enumerate(_sizes(device)):
        # h_res is left out and norms are kept now and then; float64 has gradients of all.
        parts = 2 if number % 4 == 3 else 3
        options = {"out_flag": number % 2, "inner_precise": int(number % 3 == 2)}

        def call(sizes: tuple[int, ...], number: int = number) -> tuple[tuple[Any, ...], Any]:
            given = _pre(_Maker(sizes, dtype, device), parts, number % 3 != 1)  # noqa: B023
            gamma = given.pop("gamma")
            return tuple(given.values()), {"gamma": gamma, **options}  # noqa: B023

        yield _resizable(name, sizes, call)


def _pre_backward_samples(device: str) -> Iterator[SampleInput]:
    for number, (name, sizes, dtype) in enumerate(_sizes(device)):

        def call(sizes: tuple[int, ...], number: int = number) -> tuple[tuple[Any, ...], Any]:
            make = _Maker(sizes, dtype, device)  # noqa: B023
            parts = 2 if number % 4 == 3 and device == "cpu" else 3
            given = _pre(make, parts, number % 3 != 1)
            gamma = given.pop("gamma")
            on_cpu = [each.cpu() for each in given.values()]
            kept = reference.pre(*on_cpu, gamma=None if gamma is None else gamma.cpu(), out_flag=1)
            _, h_post, _, inv_rms, h_mix, h_pre = (each.to(device) for each in kept)
            grads = (make.layer(), make.per_token(make.n))
            grads += (make.per_token(make.n, (parts - 2) * make.n),)
            first = (given["x"], given["phi"], given["alpha"], *grads)
            after = make.streams() if number % 2 else None
            return (*first, inv_rms, h_mix, h_pre, h_post, gamma, 1e-6, after), {}

        yield _resizable(name, sizes, call)


def _sinkhorn_samples(device: str) -> Iterator[SampleInput]:
    for name, sizes, options in _matrices(device):

        def call(sizes: tuple[int, ...], options: Any = options) -> tuple[tuple[Any, ...], Any]:
            return (_matrix(sizes, name, device),), options  # noqa: B023

        yield _resizable(name, sizes, call)


def _sinkhorn_backward_samples(device: str) -> Iterator[SampleInput]:
    for name, sizes, options in _matrices(device):

        def call(sizes: tuple[int, ...], options: Any = options) -> tuple[tuple[Any, ...], Any]:
            x = _matrix(sizes, name, "cpu")  # noqa: B023
            _, norm, total = reference.sinkhorn(x, **{**options, "out_flag": 1})
            return tuple(each.to(device) for each in (x.flip(0), norm, total)), {}

        yield _resizable(name, sizes, call)


def _matrices(device: str) -> Iterator[tuple[str, tuple[int, ...], dict[str, Any]]]:
    yield "tnn", (5, 4, 4), {"out_flag": 1}
    yield "bsnn", (2, 3, 6, 6), {"out_flag": 0, "num_iters": 3}
    yield "streams_8", (37, 8, 8), {"out_flag": 1, "eps": 1e-3, "num_iters": 1}
    yield "large", (9, 200, 4, 4), {"out_flag": 1, "num_iters": 5}
    if device == "cpu":
        yield "float64", (3, 4, 4), {"num_iters": 4}
        yield "empty", (0, 4, 4), {"out_flag": 1}


def _matrix(sizes: tuple[int, ...], name: str, device: str) -> Tensor:
    dtype = torch.float64 if name == "float64" else torch.float32
    return _Maker(sizes, dtype, device).draw(*sizes) * 2


def _post_samples(device: str) -> Iterator[SampleInput]:
    for number, (name, sizes, dtype) in enumerate(_sizes(device)):

        def call(sizes: tuple[int, ...], number: int = number) -> tuple[tuple[Any, ...], Any]:
            make = _Maker(sizes, dtype, device)  # noqa: B023
            x, h_res = make.streams(), make.per_token(make.n, make.n)
            h_res = None if number % 4 == 2 and device == "cpu" else h_res
            return (x, h_res, make.layer(), make.per_token(make.n)), {}

        yield _resizable(name, sizes, call)


def _post_backward_samples(device: str) -> Iterator[SampleInput]:
    for each in _post_samples(device):
        resized = each.resized and SampleInput((each.resized.args[0].flip(0), *each.resized.args))
        yield SampleInput((each.args[0].flip(0), *each.args), name=each.name, resized=resized)


def _resizable(
    name: str,
    sizes: tuple[int, ...],
    call: Callable[[tuple[int, ...]], tuple[tuple[Any, ...], dict[str, Any]]],
) -> SampleInput:
    """Return the call, and the same call for other numbers of tokens unless there are none."""
    if 0 in sizes or name == "large":
        return SampleInput(*call(sizes), name=name)
    other = (*(each + 2 for each in sizes[:-2]), *sizes[-2:])
    return SampleInput(*call(sizes), name=name, resized=SampleInput(*call(other)))


OF_OPS: dict[str, Callable[[str], Iterable[SampleInput]]] = {
    "npu_mhc_pre": _pre_samples,
    "npu_mhc_pre_backward": _pre_backward_samples,
    "npu_mhc_sinkhorn": _sinkhorn_samples,
    "npu_mhc_sinkhorn_backward": _sinkhorn_backward_samples,
    "npu_mhc_post": _post_samples,
    "npu_mhc_post_backward": _post_backward_samples,
}
"""The samples of each op."""
