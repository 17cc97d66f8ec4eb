"""A pytest plugin: ops run in a process for aarch64, under emulation, instead of on this CPU.

The variable EMULATOR is the command that starts driver.cpp, in JSON.
"""

import io
import json
import os
import struct
import subprocess
import threading
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import custom_pypto.core
import torch
from custom_pypto_contract.dtypes import DTYPES
from torch import Tensor

VARIABLE = "EMULATOR"
_NAMES = {getattr(torch, name): in_cpp for name, in_cpp in DTYPES.items()}
_DTYPES = {in_cpp: dtype for dtype, in_cpp in _NAMES.items()}


class Emulator:
    """A process that runs driver.cpp."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._lock = threading.Lock()
        self.isas = self._answers.readline().decode().split()
        """The instruction set of each library; "refused" if the processor lacks the forced one."""

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def call(self, op: Any, *given: Any, **named: Any) -> Any:
        """Call an op, which also writes to the arguments that its schema marks.

        Raises:
            RuntimeError: the op refused the call.
        """
        places = op._schema.arguments
        # torch leaves out arguments that have their default.
        rest = [named.get(place.name, place.default_value) for place in places[len(given) :]]
        arguments = (*given, *rest)
        call = (op._schema.name, torch.get_num_threads(), tuple(map(_encode, arguments)))
        with self._lock:
            answer = self._exchange(call)
        if isinstance(answer, str):
            raise RuntimeError(answer)
        results, written = answer
        for argument, place in zip(arguments, places, strict=True):
            if place.alias_info is not None and place.alias_info.is_write:
                _memory(argument).copy_(written.pop(0)[0])
        outputs = tuple(map(_decode, results))
        return outputs[0] if len(outputs) == 1 else outputs or None

    def _exchange(self, request: Any) -> Any:
        file = io.BytesIO()
        torch.save(request, file)
        self._requests.write(struct.pack("<q", len(file.getvalue())) + file.getvalue())
        self._requests.flush()
        size = self._answers.read(8)
        assert size, f"the emulator ended with status {self._process.wait()}"
        answer = self._answers.read(*struct.unpack("<q", size))
        return torch.load(io.BytesIO(answer), weights_only=False)


def _memory(tensor: Tensor) -> Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())


def _encode(value: Any) -> Any:
    """Make a tensor its whole memory, dtype, sizes, strides and offset; keep other values."""
    if isinstance(value, list | tuple):
        return [_encode(each) for each in value]
    if not isinstance(value, Tensor):
        return value
    offset = value.storage_offset()
    return _memory(value), _NAMES[value.dtype], [*value.shape], [*value.stride()], offset


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(each) for each in value]
    if not isinstance(value, tuple):
        return value
    memory, dtype, sizes, strides, offset = value
    made = torch.empty(0, dtype=_DTYPES[dtype])
    return made.set_(memory.untyped_storage(), offset, sizes, strides)


def pytest_configure() -> None:
    """Register the emulated kernels, if there is an emulator."""
    if VARIABLE not in os.environ:
        return
    emulator = Emulator(json.loads(os.environ[VARIABLE]))
    # Registrations end with this object.
    library = pytest_configure.library = torch.library.Library("custom_pypto", "IMPL")  # type: ignore[attr-defined]
    for record in custom_pypto.core.ops():
        if "CPU" in record.dispatch_keys:
            op = getattr(torch.ops.custom_pypto, record.name).default
            with warnings.catch_warnings(action="ignore"):
                library.impl(record.name, partial(emulator.call, op), "CPU", allow_override=True)
