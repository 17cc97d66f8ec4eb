"""Keeps the arguments of calls of ops, so that they can be made again.

They are JSON, and files of tensors beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from custom_pypto_contract.variables import RECORD
from custom_pypto_discovery.environment import CALLS

from custom_pypto.core.argument_memory import expect_memory
from custom_pypto.core.call_file import CallFile
from custom_pypto.core.call_text import PLAIN_TENSORS, name_dtype

FORMAT = 1
"""The number of the form in which calls are kept; another one is not read."""

MOST_INTEGERS = 4096
"""Integers of a tensor that are kept even if tensors are not: they choose what an op reads."""

MOST_CALLS = 10_000
"""Different calls that a process keeps."""
MOST_BYTES = 2**30
"""Bytes of tensors that a process keeps."""


class CallRecord:
    """The file that calls are kept in; if `target` is a folder, their tensors are in it, too."""

    def __init__(self, target: str) -> None:
        # Path.is_dir raises an error for a name that is too long.
        self._folder = Path(target) if os.path.isdir(target) else None  # noqa: PTH112
        path = self._folder / CALLS if self._folder else Path(target)
        self._seen: set[bytes] = set()
        self._bytes = 0
        self._file = CallFile(RECORD, str(path))

    def see(self, op: str, schema: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Keep a call, unless an equal one was kept before."""
        with self._file.lock:
            if not self._file.is_open:
                return
            try:
                self._keep(op, schema, args, kwargs)
            except OSError as error:
                self._file.end(str(error))
            except (RuntimeError, TypeError, ValueError):
                # Tensors of a compiler have no values.
                return

    def _keep(self, op: str, schema: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        tensors: list[torch.Tensor] | None = [] if self._folder else None
        call = {
            "format": FORMAT,
            "op": op,
            "schema": str(schema),
            "args": encode(args, tensors),
            "kwargs": {name: encode(value, tensors) for name, value in kwargs.items()},
        }
        if tensors is None:
            key = hashlib.sha256(json.dumps(call).encode()).digest()
            if key in self._seen:
                return
            self._seen.add(key)
            is_full = len(self._seen) > MOST_CALLS
        else:
            self._bytes += sum(each.nbytes for each in tensors)
            is_full = self._bytes > MOST_BYTES
        if is_full:
            self._file.end(
                f"this process has kept as much as it may, {MOST_CALLS} different calls, or"
                f" {MOST_BYTES} bytes of tensors in a folder"
            )
            return
        if self._folder and tensors is not None:
            values = list(map(copy_values, tensors))
            descriptor, name = tempfile.mkstemp(".pt", dir=self._folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    torch.save(values, file)
            except Exception as error:
                Path(name).unlink()
                raise OSError(f"tensors cannot be saved: {error}") from error
            call["tensors"] = Path(name).name
        # Write the call after its tensors: they are complete then.
        self._file.add(json.dumps(call))


class NotRecordableError(ValueError):
    """An argument has no form in which it can be kept."""


def encode(value: Any, tensors: list[torch.Tensor] | None) -> Any:
    """Return an argument as JSON. A list `tensors` gets the tensors in it.

    Raises:
        NotRecordableError: it is a tensor without values of its own, or of an unknown type.
    """
    if isinstance(value, list | tuple):
        return [encode(each, tensors) for each in value]
    if isinstance(value, torch.Tensor):
        return {"tensor": _encode_tensor(value, tensors)}
    if isinstance(value, torch.dtype | torch.device):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NotRecordableError(type(value).__name__)


def copy_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy on the CPU; torch would save the whole storage of a view."""
    plain = tensor.cpu().resolve_conj().resolve_neg()
    return plain.clone(memory_format=torch.contiguous_format)


def _encode_tensor(tensor: torch.Tensor, tensors: list[torch.Tensor] | None) -> dict[str, Any]:
    if type(tensor) not in PLAIN_TENSORS or tensor.is_meta:
        raise NotRecordableError("a tensor without values of its own")
    try:
        expect_memory("the record", "", tensor)
    except RuntimeError as error:
        raise NotRecordableError(str(error)) from None
    encoded: dict[str, Any] = {
        "dtype": name_dtype(tensor.dtype),
        "shape": [*tensor.shape],
        "strides": [*tensor.stride()],
        "device": str(tensor.device),
    }
    if tensors is not None:
        encoded["saved"] = len(tensors)
        tensors.append(tensor.detach())
    elif not is_drawn(tensor.dtype) and tensor.numel() <= MOST_INTEGERS:
        encoded["integers"] = tensor.detach().flatten().tolist()
    return encoded


def is_drawn(dtype: torch.dtype) -> bool:
    """Return whether the values of a tensor may be random when a call is made again."""
    return dtype.is_floating_point or dtype.is_complex
