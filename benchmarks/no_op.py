"""No-ops with the schemas of our ops: what a call costs before any work."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks import torch_library

SOURCE = Path(__file__).parent / "no_op" / "no_op.cpp"
NAMESPACE = "custom_pypto_benchmark_no_op"
_LIBRARY = torch.library.Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]


@functools.cache
def ops() -> Any:
    """Compile and load them; return their namespace."""
    for name in (
        "add_custom",
        "npu_lightning_indexer_pto",
        "npu_lightning_indexer",
        "npu_sparse_flash_attention",
    ):
        schema = str(getattr(torch.ops.custom_pypto, name).default._schema)
        _LIBRARY.define(schema.partition("::")[2])  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as build:
        library = Path(build, "no_op.so")
        torch_library.compile_library(SOURCE, library)
        torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    return getattr(torch.ops, NAMESPACE)
