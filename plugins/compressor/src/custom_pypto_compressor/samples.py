"""Seeded calls of the ops. Sizes differ: torch.compile takes equal sizes for one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from custom_pypto_plugin import SampleInput
from torch import Tensor

Arguments = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """A call: how many new tokens each sequence has, and at which position they begin.

    A sequence of `padding` more tokens than it uses gets seqused. `is_packed` chooses x [T, H].
    """

    tokens: tuple[int, ...]
    starts: tuple[int, ...] | None = None
    hidden: int = 40
    channels: int = 19
    ratio: int = 4
    coff: int = 2
    block_size: int = 6
    cache_mode: int = 1
    is_packed: bool = False
    padding: int = 0
    dtype: torch.dtype = torch.float32
    integers: torch.dtype = torch.int32

    @property
    def width(self) -> int:
        """The numbers of kv of a token."""
        return self.coff * self.channels


Cases = dict[str, tuple[Sizes, Sizes | None]]
"""Calls by name, some with the same call at other sizes."""


class _Data:
    """Draws tensors, the same ones for equal sizes."""

    def __init__(self, sizes: Sizes, device: str) -> None:
        self.sizes, self.device = sizes, device
        self.generator = torch.Generator().manual_seed(sum(sizes.tokens))

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1) -> Tensor:
        drawn = torch.randn(shape, generator=self.generator, dtype=torch.float64, device="cpu")
        return (drawn * scale).to(self.device, dtype)

    def integers(self, values: Any) -> Tensor:
        return torch.as_tensor(values, dtype=self.sizes.integers, device="cpu").to(self.device)


def train_arguments(sizes: Sizes, device: str) -> Arguments:
    """A call of npu_compressor_train."""
    data, dtype = _Data(sizes, device), sizes.dtype
    lengths = [each + sizes.padding for each in sizes.tokens]
    leading = (sum(lengths),) if sizes.is_packed else (len(lengths), max(lengths))
    is_ragged = sizes.padding > 0 or (not sizes.is_packed and len({*lengths}) > 1)
    ends = torch.tensor([0, *lengths], device="cpu").cumsum(0)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    weight = {"dtype": dtype, "scale": sizes.hidden**-0.5}
    return {
        "x": data.normal(*leading, sizes.hidden, dtype=dtype),
        "wkv": data.normal(sizes.width, sizes.hidden, **weight),
        "wgate": data.normal(sizes.width, sizes.hidden, **weight),
        "ape": data.normal(sizes.ratio, sizes.width, dtype=wide),
        "cmp_ratio": sizes.ratio,
        "cu_seqlens": data.integers(ends) if sizes.is_packed else None,
        "seqused": data.integers(sizes.tokens) if is_ragged else None,
        "coff": sizes.coff,
    }


def compressor_arguments(sizes: Sizes, device: str) -> Arguments:
    """A call of npu_compressor whose state is full of numbers."""
    data, count = _Data(sizes, device), len(sizes.tokens)
    starts = sizes.starts or (0,) * count
    ends = [a + b + sizes.padding for a, b in zip(starts, sizes.tokens, strict=True)]
    pages = 1 if sizes.cache_mode == 2 else -(-max(ends) // sizes.block_size)
    # Block 0 is nobody's.
    table = torch.arange(1, count * pages + 1, device="cpu").reshape(count, pages)
    return {
        **train_arguments(sizes, device),
        "state_cache": data.normal(count * pages + 21, sizes.block_size, 2 * sizes.width),
        "state_block_table": data.integers(table[:, 0].flip(0) if sizes.cache_mode == 2 else table),
        "start_pos": None if sizes.starts is None else data.integers(starts),
        "cache_mode": sizes.cache_mode,
    }


def backward_arguments(sizes: Sizes, device: str) -> Arguments:
    """The call of npu_compressor_backward that follows a call of the form for training."""
    call = train_arguments(sizes, "cpu")
    rows, weights, kv = torch.ops.custom_pypto.npu_compressor_train(**call)
    gradient = _Data(sizes, "cpu").normal(*rows.shape, dtype=rows.dtype).flip(-1)
    call |= {"softmax_score": weights, "kv": kv, "d_cmp_kv": gradient, "start_pos": None}
    del call["ape"]
    return {
        name: each.to(device) if isinstance(each, Tensor) else each for name, each in call.items()
    }


_PLAIN = Sizes((17, 17), dtype=torch.bfloat16)
_PACKED = Sizes((5, 37), is_packed=True, channels=22)
_WHOLE: Cases = {
    "plain": (_PLAIN, replace(_PLAIN, tokens=(27,) * 3, hidden=48, channels=23, block_size=5)),
    "packed": (
        _PACKED,
        replace(_PACKED, tokens=(7, 5, 1, 9, 0, 19, 11), hidden=48, channels=29, block_size=13),
    ),
    "padded": (replace(_PACKED, padding=2, dtype=torch.float16, integers=torch.int64), None),
    "ragged-no-overlap": (Sizes((0, 13, 37), coff=1, ratio=8), None),
    "large": (Sizes((90, 90), hidden=640, channels=70), None),
}
"""Calls of whole sequences, with the same call at other sizes."""

_STEP = Sizes((1, 1, 1, 1, 1), starts=(3, 12, 7, 0, 16))
_RING = Sizes((5, 5, 5), starts=(5, 14, 3), block_size=14, cache_mode=2)
_CONTINUED: Cases = {
    "decode": (
        _STEP,
        replace(_STEP, tokens=(1,) * 3, starts=(7, 2, 11), hidden=48, channels=23, block_size=9),
    ),
    "chunks": (Sizes((6, 1, 9, 2), (5, 3, 8, 1), is_packed=True, dtype=torch.bfloat16), None),
    "ring": (
        _RING,
        replace(_RING, tokens=(7,) * 6, starts=(3, 9, 21, 0, 2, 40), block_size=16, channels=21),
    ),
    "ratio-128": (Sizes((133,), (124,), ratio=128, coff=1, hidden=24, block_size=32), None),
}
"""Calls of sequences that have a state."""

_NPU = Sizes((13, 13), hidden=1024, channels=128, block_size=32, dtype=torch.bfloat16)
_NPU_PACKED: Cases = {
    "packed": (replace(_NPU, tokens=(9, 5, 14), is_packed=True, dtype=torch.float16), None)
}
_NPU_STEP = replace(_NPU, tokens=(1, 1, 1), starts=(3, 10, 63))
_CANN: Cases = {
    "decode": (
        _NPU_STEP,
        replace(_NPU_STEP, tokens=(1,) * 5, starts=(7, 2, 95, 40, 11), block_size=40),
    ),
    "heavily-compressed": (replace(_NPU, tokens=(150,), starts=(100,), ratio=128, coff=1), None),
    "ring": (replace(_NPU, tokens=(3, 3), starts=(5, 14), cache_mode=2), None),
    **_NPU_PACKED,
}
_CANN_WHOLE: Cases = {
    "ragged": (replace(_NPU, tokens=(19, 6)), replace(_NPU, tokens=(17, 8, 17))),
    **_NPU_PACKED,
}
_SMALL: Cases = {
    "float64": (Sizes((9, 9), hidden=3, channels=2, ratio=2, dtype=torch.float64), None)
}


def compressor_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_compressor."""
    cases = {**_WHOLE, **_CONTINUED} if device == "cpu" else _CANN
    return _samples(compressor_arguments, "x wkv wgate state_cache ape", cases, device)


def train_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_compressor_train."""
    cases = {**_SMALL, **_WHOLE} if device == "cpu" else _CANN_WHOLE
    return _samples(train_arguments, "x wkv wgate ape", cases, device)


def backward_samples(device: str) -> Iterator[SampleInput]:
    """Inputs of npu_compressor_backward."""
    cases = {**_SMALL, **_WHOLE} if device == "cpu" else _CANN_WHOLE
    return _samples(backward_arguments, "d_cmp_kv x wkv wgate softmax_score kv", cases, device)


def _samples(make: Any, positional: str, cases: Cases, device: str) -> Iterator[SampleInput]:
    def sample(sizes: Sizes, name: str = "", larger: Sizes | None = None) -> SampleInput:
        call = make(sizes, device)
        args = tuple(call.pop(each) for each in positional.split())
        return SampleInput(args, call, name, None if larger is None else sample(larger))

    for name, (sizes, larger) in cases.items():
        yield sample(sizes, name, larger)
