"""The ops npu_quant_matmul and npu_dynamic_quant: what ops.toml and the kernels do not give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from custom_pypto_plugin import Reference, SampleInput, hookimpl

from .ops import *


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., Any]]:
    """The result has the dtype that a number names."""
    from .reference import empty_result

    return {"npu_quant_matmul": empty_result}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterator[SampleInput]]]:
    """Calls as engines make them, with weights [N, K] seen as [K, N]."""
    from . import samples

    return {
        "npu_quant_matmul": samples.products,
        "npu_dynamic_quant": samples.quantised,
    }


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """Plain PyTorch, which rounds where the kernels do."""
    from . import reference

    return {
        "npu_quant_matmul": Reference(reference.npu_quant_matmul),
        "npu_dynamic_quant": Reference(reference.npu_dynamic_quant),
    }
