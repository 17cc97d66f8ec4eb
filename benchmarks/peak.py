"""The machine's peaks, measured in the run that compares kernels with them.

The loops in peaks/ run in torch's own threads, as the kernels do.
"""

from __future__ import annotations

import ctypes
import functools
import tempfile
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from custom_pypto_build import plugin_library

SOURCES = Path(__file__).parent / "peaks"
UNITS = {
    "avx512_bf16": "bf16 dot product, 512 bits",
    "avx512_vnni": "int8 dot product, 512 bits",
    "avx512": "fp32 FMA, 512 bits",
    "avx2_vnni": "int8 dot product, 256 bits",
    "avx2": "fp32 FMA, 256 bits",
    "neon_i8mm": "int8 matrix product, 128 bits",
    "neon_bf16": "bf16 dot product, 128 bits",
    "neon_dot": "int8 dot product, 128 bits",
    "neon": "fp32 FMA, 128 bits",
}
"""The arithmetic units that are measured, by the instruction set that has them."""

BF16_UNITS = {"avx512_bf16": "avx512_bf16", "neon_bf16": "neon_bf16", "neon_i8mm": "neon_bf16"}
"""The unit of bf16 kernels, by instruction set."""

INT8_UNITS = {
    **dict.fromkeys(("avx512_bf16", "avx512_vnni"), "avx512_vnni"),
    **dict.fromkeys(("neon_bf16", "neon_dot"), "neon_dot"),
    "avx2_vnni": "avx2_vnni",
    "neon_i8mm": "neon_i8mm",
}
"""The unit of int8 kernels, by instruction set."""

READING = "reading memory"
# Long enough to wake every thread, short enough to interleave with the timed calls.
_SECONDS = 1e-2
# Many times the size of a cache.
_READ_BYTES = 2**28


def unit_of(isa: str | None, dtype: torch.dtype) -> str | None:
    """Return the unit that kernels multiply numbers of a dtype with; None: unknown.

    16-bit numbers are widened where the instruction set has no dot product of bf16.
    """
    if isa not in UNITS:
        return None
    if dtype == torch.int8:
        return INT8_UNITS.get(isa)
    family = isa.partition("_")[0]
    return BF16_UNITS.get(isa, family) if dtype == torch.bfloat16 else family


@dataclass(frozen=True)
class Yardstick:
    """A call at peak speed: multiplications and additions, or bytes read, per call."""

    call: Callable[[], object]
    amount: int

    def rate(self, rounds: int = 10) -> float:
        """Return the best rate of some calls, per second."""
        return self.amount / min(timeit.repeat(self.call, number=1, repeat=rounds))


class Peaks:
    """The compiled loops."""

    def __init__(self) -> None:
        """Compile them. Raises custom_pypto_build.errors.BuildError when that fails."""
        library = _library()
        self._multiply_add = library["custom_pypto_peak_multiply_add"]
        self._multiply_add.argtypes = [ctypes.c_char_p, ctypes.c_int64]
        self._multiply_add.restype = ctypes.c_int64
        self._read = library["custom_pypto_peak_read"]
        self._read.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self._read.restype = ctypes.c_int64
        self._memory: torch.Tensor | None = None
        self._rounds: dict[str, int] = {}

    def arithmetic(self, unit: str) -> Yardstick | None:
        """Return the yardstick of one of UNITS; None where the machine lacks it."""
        per_round = self._multiply_add(unit.encode(), 1)
        if per_round == 0:
            return None
        if unit not in self._rounds:
            few = 1_000_000
            seconds = timeit.timeit(partial(self._multiply_add, unit.encode(), few), number=1)
            self._rounds[unit] = int(few * _SECONDS / seconds) + 1
        rounds = self._rounds[unit]
        return Yardstick(partial(self._multiply_add, unit.encode(), rounds), per_round * rounds)

    def reading(self) -> Yardstick:
        """Return the yardstick of reading memory that no cache holds."""
        if self._memory is None:
            self._memory = torch.ones(_READ_BYTES // 8, dtype=torch.int64)
        memory = self._memory
        # The call keeps the memory.
        return Yardstick(lambda: self._read(memory.data_ptr(), _READ_BYTES), _READ_BYTES)

    def measure(self) -> dict[str, float]:
        """Return the rate of every yardstick with torch's present number of threads."""
        rates = {}
        for unit, name in UNITS.items():
            yardstick = self.arithmetic(unit)
            if yardstick is not None:
                rates[name] = yardstick.rate()
        return {**rates, READING: self.reading().rate()}


@functools.cache
def _library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        return ctypes.CDLL(str(plugin_library.build_project(SOURCES, Path(folder))))
