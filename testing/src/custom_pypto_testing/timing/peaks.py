"""The machine's peaks, measured in the run that compares kernels with them."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import shlex
import tempfile
import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from custom_pypto import core
from custom_pypto_contract import guarded, ops_file

from .interleaved import Quartiles, Timed

# Long enough to wake every thread, short enough to interleave with the timed calls.
_SECONDS = 1e-2
_FEW_ROUNDS = 10_000
# Many times the size of a cache.
_READ_BYTES = 2**28
_SOURCE = Path(__file__).with_suffix(".cpp")
_ISAS = Path(core.__file__).parent / "include" / "custom_pypto" / "cpu" / "isa.toml"
_KINDS = {torch.bfloat16: "BF16", torch.int8: "INT8"}


@dataclass(frozen=True)
class Work:
    """A step's operations and memory traffic; the slower of the two bounds its time."""

    flops: int = 0
    """Multiplications and additions."""
    bytes: int = 0
    """Bytes read from memory and written to it."""


@dataclass(frozen=True)
class Peak:
    """A call at peak speed: multiplications and additions, or bytes read, per call."""

    call: Callable[[], object]
    amount: float


def find_peaks(work: Sequence[Work], isa: str | None, dtype: torch.dtype) -> dict[str, Peak]:
    """Return the peaks that bound work: of "flops" and of "bytes".

    The peak of flops is absent where it is not known, see `multiply_adds`.
    """
    found = {}
    if any(step.flops for step in work) and (arithmetic := multiply_adds(isa, dtype)):
        found["flops"] = arithmetic
    if any(step.bytes for step in work):
        found["bytes"] = reading()
    return found


def timed(peaks: Mapping[str, Peak]) -> dict[str, Timed]:
    """Return the calls of peaks, to time them beside others."""
    return {name: Timed(peak.call) for name, peak in peaks.items()}


def at_peak(
    work: Sequence[Work], peaks: Mapping[str, Peak], times: Mapping[str, Quartiles]
) -> float | None:
    """Return how long work takes at the peaks, whose times are in `times`.

    None where a peak is not known, and for no work.
    """
    seconds = 0.0
    for step in work:
        amounts = {name: amount for name, amount in vars(step).items() if amount}
        if amounts.keys() - peaks.keys():
            return None
        parts = (amount * times[name][1] / peaks[name].amount for name, amount in amounts.items())
        seconds += max(parts, default=0.0)
    return seconds or None


@functools.cache
def reading() -> Peak:
    """Return the peak of reading memory that no cache holds."""
    return Peak(torch.ones(_READ_BYTES // 8, dtype=torch.int64, device="cpu").sum, _READ_BYTES)


def multiply_adds(isa: str | None, dtype: torch.dtype) -> Peak | None:
    """Return the peak of multiplying numbers of a dtype, and adding, by an instruction set.

    `isa` is a name as `core.cpu_isa` returns it; None and "portable" mean all that this machine
    has. The numbers are float32 if the instruction set has no products of bf16, and for other
    floats. Returns None without a C++ compiler, and if there are no products of int8.
    """
    library = _compiled(isa, _KINDS.get(dtype, "FP32"))
    if library is None:
        return None
    run: Any = library.custom_pypto_peak
    run.restype = ctypes.c_int64
    # torch has loaded it.
    torch_library = ctypes.CDLL("libtorch_cpu.so")
    parallel = ctypes.cast(torch_library.torch_parallel_for, ctypes.c_void_p)

    def call(rounds: int) -> int:
        threads = ctypes.c_int64(torch.get_num_threads())
        return int(run(parallel, threads, ctypes.c_int64(rounds)))

    call(1)
    once = min(timeit.repeat(lambda: call(_FEW_ROUNDS), number=1, repeat=5))
    rounds = int(_FEW_ROUNDS * _SECONDS / once) + 1
    return Peak(lambda: call(rounds), call(1) * rounds)


@functools.cache
def _compiled(isa: str | None, kind: str) -> ctypes.CDLL | None:
    compiler = shlex.split(os.environ.get("CXX") or "g++")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "peaks.so")
        command = [*compiler, *compile_flags(isa, kind), "-shared", "-o", str(library)]
        status, _, _ = guarded.run(command)
        if status != 0:
            return None
        return ctypes.CDLL(str(library))


def compile_flags(isa: str | None, kind: str) -> list[str]:
    """Return the flags with which the loop is compiled, and its file."""
    flags = ["-std=c++17", "-O3", "-ffp-contract=fast", "-fPIC", *_flags(isa)]
    return [*flags, f"-DCUSTOM_PYPTO_{kind}", str(_SOURCE)]


def _flags(isa: str | None) -> list[str]:
    """Return the compiler flags of an instruction set and of all before it."""
    tables = ops_file.read_toml(_ISAS)
    machine = platform.machine()
    flags: list[str] = []
    for name, own in tables.get(machine, {}).items():
        flags += own
        of_kinds = [tables[kind].get(machine, {}).get(name, {}) for kind in ("bf16", "int8")]
        further = {**of_kinds[0], **of_kinds[1]}
        if isa == name or isa in further:
            return [*flags, *further.get(isa, [])]
    return ["-march=native"]
