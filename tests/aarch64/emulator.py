"""A driver that runs on an emulated aarch64 processor and answers requests."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import torch
from cross_build import EMULATORS, require
from custom_pypto_build import compiler
from custom_pypto_contract.dtypes import DTYPES
from torch import Tensor

ISA_VARIABLE = "CUSTOM_PYPTO_CPU_ISA"
ISA_REQUEST = 0

# Armv8.0; the same with dot products of int8; and all that the emulator knows, bf16 and matrix
# products of int8 among them: it has no processor between the last two.
PLAIN_CPU = "cortex-a72"
DOT_CPU = "neoverse-n1"
MAX_CPU = "max"

CPUS = {
    "portable": PLAIN_CPU,
    "neon": PLAIN_CPU,
    "neon_dot": DOT_CPU,
    "neon_bf16": MAX_CPU,
    "neon_i8mm": MAX_CPU,
}
"""For each instruction set the least processor that has it."""


def _elements() -> dict[torch.dtype, int]:
    include = compiler.core_include() / "custom_pypto"
    enum = re.search(r"enum class Element : int {(.*)};", (include / "cpu/element.h").read_text())
    assert enum
    order = enum[1].replace(" ", "").split(",")
    # element_of() names all but the last, float32.
    pairs = re.findall(
        r"ScalarType::(\w+)\)? (?:return|\?) Element::(\w+)", (include / "dtype.h").read_text()
    )
    elements = {"Float": "fp32", **dict(pairs)}
    assert sorted(elements.values()) == sorted(order)
    return {
        getattr(torch, name): order.index(elements[cpp])
        for name, cpp in DTYPES.items()
        if cpp in elements
    }


ELEMENTS = _elements()
"""{dtype: its Element of custom_pypto/cpu/element.h}, for every dtype that kernels read."""

Argument = int | float | bytes | Tensor


class Emulated:
    """One process; if it ends before it has answered, errors show its standard error."""

    def __init__(self, driver: Path, cpu: str, isa: str | None = None) -> None:
        environment = {k: v for k, v in os.environ.items() if k != ISA_VARIABLE}
        if isa is not None:
            environment[ISA_VARIABLE] = isa
        self._process = subprocess.Popen(
            [require(*EMULATORS), "-cpu", cpu, driver],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def isa(self) -> str:
        """Return the instruction set of the kernels that it uses."""
        return self.call(ISA_REQUEST, (), 1)[0].decode()

    def call(self, request: int, arguments: Sequence[Argument], answers: int) -> list[bytes]:
        """Send a request; return this number of arrays.

        Raises:
            AssertionError: the process ended; the message holds its standard error.
        """
        # A thread writes, because the process may answer before it has read everything.
        message = b"".join(map(_encode, (request, *arguments)))
        writer = threading.Thread(target=self._write, args=(message,))
        writer.start()
        try:
            return [self._read(*struct.unpack("<q", self._read(8))) for _ in range(answers)]
        finally:
            writer.join()

    def _write(self, message: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # Reading the answer fails, and reports why.

    def _read(self, size: int) -> bytes:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            text = self._process.stderr.read().decode(errors="replace")
            status = self._process.wait()
            raise AssertionError(f"the driver ended with status {status}: {text}")
        return data


def _encode(argument: Argument) -> bytes:
    match argument:
        case bool() | int():
            return struct.pack("<q", argument)
        case float():
            return struct.pack("<d", argument)
        case Tensor():
            return _encode(raw(argument))
        case _:
            return struct.pack("<q", len(argument)) + argument


def raw(tensor: Tensor) -> bytes:
    """Return the bytes of the whole memory that `tensor` is a view of."""
    every = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
    return bytes(every.numpy())


def offset(tensor: Tensor) -> int:
    """Return where in that memory it begins, in elements."""
    return int(tensor.storage_offset())


def tensor_of(data: bytes, dtype: torch.dtype, *shape: int) -> Tensor:
    """Make a tensor with these elements."""
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)
