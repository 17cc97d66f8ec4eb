"""Seeded inputs of each op, by device."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

from . import reference

Sizes = tuple[int, ...]
"""Tokens, streams, columns: [T, n, D] or [B, S, n, D]."""
Call = tuple[Any, ...]
"""Positional arguments, then a dict of the others."""

# No multiples of a vector on a CPU. Sizes of different dims differ: torch would take equal ones for
# one dynamic size.
_ON_CPU: dict[str, tuple[Sizes, torch.dtype]] = {
    "tnd": ((5, 4, 24), torch.bfloat16),
    "bsnd": ((2, 5, 6, 33), torch.float16),
    "streams_8": ((7, 8, 17), torch.float32),
    "large": ((64, 4, 4096), torch.bfloat16),
    "float64": ((2, 4, 3), torch.float64),
}
_ON_NPU: dict[str, tuple[Sizes, torch.dtype]] = {
    "tnd": ((5, 4, 32), torch.bfloat16),
    "bsnd": ((2, 5, 6, 48), torch.float16),
    "streams_8": ((7, 8, 16), torch.bfloat16),
    "no_h_res": ((3, 4, 64), torch.float16),
}


class _Maker:
    """Makes random tensors of one call, on a device."""

    def __init__(self, sizes: Sizes, dtype: torch.dtype, device: str) -> None:
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
    parts = 2 if number == 3 else 3
    rows = 2 * make.n + (parts - 2) * make.n**2
    phi = make.draw(rows, make.n * make.columns) / make.columns**0.5
    gamma = None if number == 1 else make.draw(make.n, make.columns)
    options = {"gamma": gamma, "out_flag": number % 2, "inner_precise": int(number == 2)}
    return make.streams(), phi, make.draw(parts), make.draw(rows), options


def _pre_backward(make: _Maker, number: int) -> Call:
    # NPUs have no gradient without h_res.
    *args, options = _pre(make, number if make.device == "cpu" else number % 3)
    gamma = options["gamma"]
    on_cpu = [each.cpu() for each in args]
    kept = reference.pre(*on_cpu, gamma=None if gamma is None else gamma.cpu(), out_flag=1)
    _, h_post, h_res, *others = (each.to(make.device) for each in kept)
    grads = (make.layer(), make.per_token(make.n), make.per_token(*h_res.shape[-2:]))
    grad_x_post = make.streams() if number % 2 else None
    return *args[:3], *grads, *others, h_post, gamma, 1e-6, grad_x_post, {}


def _post(make: _Maker, number: int) -> Call:
    h_res = None if number == 2 else make.per_token(make.n, make.n)
    return make.streams(), h_res, make.layer(), make.per_token(make.n), {}


def _post_backward(make: _Maker, number: int) -> Call:
    return make.streams(), *_post(make, number)


_OF_MATRICES: tuple[dict[str, Any], ...] = (
    {"out_flag": 1},
    {"num_iters": 3},
    {"out_flag": 1, "eps": 1e-3, "num_iters": 1},
    {"out_flag": 1, "num_iters": 5},
    {"num_iters": 4},
)


def _sinkhorn(make: _Maker, number: int) -> Call:
    return 2 * make.per_token(make.n, make.n), _OF_MATRICES[number]


def _sinkhorn_backward(make: _Maker, number: int) -> Call:
    x, options = _sinkhorn(make, number)
    _, norm, total = reference.sinkhorn(x.cpu(), **{**options, "out_flag": 1})
    return x.flip(0), norm.to(make.device), total.to(make.device), {}


def _samples(call: Callable[[_Maker, int], Call], device: str) -> Iterator[SampleInput]:
    """Yield calls of all sizes, and the same calls for more tokens unless they are large."""
    for number, (name, (sizes, dtype)) in enumerate(
        (_ON_CPU if device == "cpu" else _ON_NPU).items()
    ):
        more = (*(each + 2 for each in sizes[:-2]), *sizes[-2:])
        made = [call(_Maker(each, dtype, device), number) for each in (sizes, more)]
        sample, resized = (SampleInput(each[:-1], each[-1], name) for each in made)
        yield SampleInput(sample.args, sample.kwargs, name, None if name == "large" else resized)


OF_OPS: dict[str, Callable[[str], Iterable[SampleInput]]] = {
    f"npu_mhc{call.__name__}": partial(_samples, call)
    for call in (_pre, _pre_backward, _sinkhorn, _sinkhorn_backward, _post, _post_backward)
}
"""The samples of each op."""
