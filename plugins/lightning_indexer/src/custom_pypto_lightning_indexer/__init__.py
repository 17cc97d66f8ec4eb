"""The lightning indexer of DeepSeek sparse attention: npu_lightning_indexer_pto, for 8 bits
npu_quant_lightning_indexer, and the second version of both.

README.md of the distribution defines the ops in PyTorch, ops.toml says what their arguments are.
This module gives what neither can: sample inputs, references with their comparison, converters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl

from .ops import *

OP = "npu_lightning_indexer_pto"
QUANT_OP = "npu_quant_lightning_indexer"
WITH_VALUES = "npu_lightning_indexer"
GRAD = "npu_lightning_indexer_grad"
V2 = "npu_lightning_indexer_v2"
QUANT_V2 = "npu_quant_lightning_indexer_v2"


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The first derivative of the values."""
    from . import gradient

    return {
        WITH_VALUES: Autograd(
            gradient.backward, gradient.setup_context, is_once_differentiable=True
        )
    }


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The torchair converters; called once torchair is there."""
    from . import converter

    return {
        OP: converter.convert_lightning_indexer,
        QUANT_OP: converter.convert_quant_lightning_indexer,
        WITH_VALUES: converter.convert_lightning_indexer_with_values,
        GRAD: converter.convert_lightning_indexer_grad,
        V2: converter.convert_lightning_indexer_v2,
        QUANT_V2: converter.convert_quant_lightning_indexer_v2,
    }


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded inputs, by device."""
    from . import samples, samples_v2

    return {
        OP: samples.lightning_indexer,
        QUANT_OP: samples.quant_lightning_indexer,
        WITH_VALUES: samples.with_values,
        GRAD: samples.gradients,
        V2: samples_v2.lightning_indexer,
        QUANT_V2: samples_v2.quant_lightning_indexer,
    }


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """The ops in plain PyTorch, and how to compare with them."""
    from functools import partial

    from . import reference
    from . import selection_comparison as comparison

    selecting = (OP, QUANT_OP, WITH_VALUES, V2, QUANT_V2)
    return {
        op: Reference(partial(reference.select, op), partial(comparison.compare, op))
        for op in selecting
    } | {GRAD: Reference(reference.gradients, comparison.compare_gradients)}
