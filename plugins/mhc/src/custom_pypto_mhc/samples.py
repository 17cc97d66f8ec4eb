"""Seeded inputs of each op, by device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

from . import reference

_DTYPES = (torch.bfloat16, torch.float16, torch.float32)
# Tokens, streams, columns: [T, n, D] and [B, S, n, D]; no multiples of a vector on a CPU. Sizes of
# different dims differ: torch would take equal ones for one dynamic size.
_ON_CPU = {"tnd": (5, 4, 24), "bsnd": (2, 5, 6, 33), "streams_8": (7, 8, 17)}
_ON_NPU = {"tnd": (5, 4, 32), "bsnd": (2, 5, 6, 48), "streams_8": (7, 8, 16)}
# DeepSeek-V4-Flash's columns: one new token, and a part of a prompt.
_DECODE, _PROMPT = (1, 4, 4096), (64, 4, 4096)

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""


class _Maker:
    """Makes random tensors of one call, on a device."""

    def __init__(self, sizes: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
        self.sizes, self.tokens, self.n, self.columns = sizes, sizes[:-2], sizes[-2], sizes[-1]
        self.dtype, self.device = dtype, device
        self._number = torch.float64 if dtype == torch.float64 else torch.float32
        self._generator = torch.Generator().manual_seed(0)

    def draw(self, *sizes: int, dtype: torch.dtype | None = None) -> Tensor:
        made = torch.randn(sizes, generator=self._generator, device="cpu", dtype=torch.float64)
        return made.to(self.device, dtype or self._number)

    def per_token(self, *sizes: int) -> Tensor:
        return self.draw(*self.tokens, *sizes)

    def streams(self) -> Tensor:
        return self.draw(*self.sizes, dtype=self.dtype)

    def layer(self) -> Tensor:
        return self.draw(*self.tokens, self.columns, dtype=self.dtype)


def _pre(make: _Maker, number: int) -> Call:
    """Without gamma, without h_res, with all results, and in HF32, now and then."""
    parts = 2 if number % 4 == 3 else 3
    rows = 2 * make.n + (parts - 2) * make.n**2
    phi = make.draw(rows, make.n * make.columns) / make.columns**0.5
    gamma = None if number % 3 == 1 else make.draw(make.n, make.columns)
    options = {"out_flag": number % 2, "inner_precise": int(number % 3 == 2)}
    return (make.streams(), phi, make.draw(parts), make.draw(rows)), {"gamma": gamma, **options}


def _pre_backward(make: _Maker, number: int) -> Call:
    # NPUs have no gradient without h_res.
    args, options = _pre(make, number if make.device == "cpu" else number // 4 * 4)
    on_cpu = [each.cpu() for each in args]
    gamma = options["gamma"]
    kept = reference.pre(*on_cpu, gamma=None if gamma is None else gamma.cpu(), out_flag=1)
    _, h_post, h_res, *others = (each.to(make.device) for each in kept)
    grads = (make.layer(), make.per_token(make.n), make.per_token(*h_res.shape[-2:]))
    grad_x_post = make.streams() if number % 2 else None
    return (*args[:3], *grads, *others, h_post, gamma, 1e-6, grad_x_post), {}


def _post(make: _Maker, number: int) -> Call:
    h_res = None if number % 4 == 2 else make.per_token(make.n, make.n)
    return (make.streams(), h_res, make.layer(), make.per_token(make.n)), {}


def _post_backward(make: _Maker, number: int) -> Call:
    args, options = _post(make, number)
    return (make.streams(), *args), options


def _samples(call: Callable[[_Maker, int], Call], device: str) -> Iterator[SampleInput]:
    """Yield calls of all sizes, and all dtypes, that a device takes; a large and an empty one."""
    found: list[tuple[str, tuple[int, ...], torch.dtype]] = []
    for (name, sizes), dtype in zip(
        (_ON_CPU if device == "cpu" else _ON_NPU).items(), _DTYPES, strict=True
    ):
        dtypes = {torch.bfloat16, dtype} if device == "cpu" else {torch.bfloat16, torch.float16}
        for each in sorted(dtypes, key=str):
            found.append((f"{name}_{str(each).removeprefix('torch.')}", sizes, each))
    found.append(("decode", _DECODE, torch.bfloat16))
    found.append(("large", _PROMPT, torch.bfloat16))
    if device == "cpu":
        found.append(("empty", (2, 0, 4, 3), torch.bfloat16))
        found.append(("float64", (2, 4, 3), torch.float64))
    for number, (name, sizes, dtype) in enumerate(found):

        def made(
            sizes: tuple[int, ...], number: int = number, dtype: torch.dtype = dtype
        ) -> SampleInput:
            return SampleInput(*call(_Maker(sizes, dtype, device), number))

        yield _resizable(name, sizes, made)


def _sinkhorn(sizes: tuple[int, ...], dtype: torch.dtype, device: str, **options: Any) -> Call:
    return (2 * _Maker(sizes, dtype, device).draw(*sizes),), options


def _sinkhorn_backward(
    sizes: tuple[int, ...], dtype: torch.dtype, device: str, **options: Any
) -> Call:
    ((x,), _) = _sinkhorn(sizes, dtype, "cpu")
    _, norm, total = reference.sinkhorn(x, **{**options, "out_flag": 1})
    return tuple(each.to(device) for each in (x.flip(0), norm, total)), {}


def _samples_of_matrices(call: Callable[..., Call], device: str) -> Iterator[SampleInput]:
    found: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
        "tnn": ((5, 4, 4), {"out_flag": 1}),
        "bsnn": ((2, 5, 6, 6), {"num_iters": 3}),
        "streams_8": ((37, 8, 8), {"out_flag": 1, "eps": 1e-3, "num_iters": 1}),
        "large": ((9, 200, 4, 4), {"out_flag": 1, "num_iters": 5}),
        "one": ((1, 6, 6), {}),
    }
    if device == "cpu":
        found["float64"] = ((3, 4, 4), {"num_iters": 4})
        found["empty"] = ((0, 4, 4), {"out_flag": 1})
    for name, (sizes, options) in found.items():
        dtype = torch.float64 if name == "float64" else torch.float32

        def made(
            sizes: tuple[int, ...], dtype: torch.dtype = dtype, options: dict[str, Any] = options
        ) -> SampleInput:
            return SampleInput(*call(sizes, dtype, device, **options))

        yield _resizable(name, sizes, made)


def _resizable(
    name: str, sizes: tuple[int, ...], made: Callable[[tuple[int, ...]], SampleInput]
) -> SampleInput:
    """Return the call, and the same call for more tokens unless it is large or of 0 or 1."""
    call = made(sizes)
    is_resized = name not in ("large", "decode", "one", "empty")
    resized = made((*(each + 2 for each in sizes[:-2]), *sizes[-2:])) if is_resized else None
    return SampleInput(call.args, call.kwargs, name=name, resized=resized)


OF_OPS: dict[str, Callable[[str], Iterable[SampleInput]]] = {
    "npu_mhc_pre": partial(_samples, _pre),
    "npu_mhc_pre_backward": partial(_samples, _pre_backward),
    "npu_mhc_sinkhorn": partial(_samples_of_matrices, _sinkhorn),
    "npu_mhc_sinkhorn_backward": partial(_samples_of_matrices, _sinkhorn_backward),
    "npu_mhc_post": partial(_samples, _post),
    "npu_mhc_post_backward": partial(_samples, _post_backward),
}
"""The samples of each op."""
