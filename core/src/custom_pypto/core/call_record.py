"""Keeps the arguments of calls of ops, so that they can be made again; see `recorded_call`."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from custom_pypto_discovery import environment

from custom_pypto.core.call_file import CallFile
from custom_pypto.core.recorded_call import CALLS, FORMAT, copy_values, encode

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
        self._file = CallFile(environment.RECORD, str(path))

    def see(self, op: str, schema: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Keep a call, if it is none that was kept before."""
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
        # After its tensors, which are complete then.
        self._file.add(json.dumps(call))
