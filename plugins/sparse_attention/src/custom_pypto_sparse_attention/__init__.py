"""DeepSeek sparse attention for decoding: npu_sparse_attention_pto and the ops it is built from.

README.md of the distribution defines every op in PyTorch. This module contributes what torch needs
beyond the library: shape rules, sample inputs, references and graph converters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl

from .conversion_options import ConversionOptions, conversion_options
from .convert_weights import IndexRope, LayerWeights, convert_weights
from .ops import *
from .weight_order import declare_nz_weights, to_nz

__all__ = [
    "ConversionOptions",
    "IndexRope",
    "LayerWeights",
    "conversion_options",
    "convert_weights",
    "declare_nz_weights",
    "to_nz",
]

FUSED = "npu_sparse_attention_pto"
MLA_PROLOG = "npu_mla_prolog"
INDEXER_PROLOG = "npu_indexer_prolog"
ATTENTION = "npu_sparse_flash_attention"
ATTENTION_GRAD = "npu_sparse_flash_attention_grad"


@hookimpl
def custom_pypto_fakes(
    generated: Mapping[str, Callable[..., Any]],
) -> Mapping[str, Callable[..., Any]]:
    """The fakes that come from the contract, which know nothing of declared weights."""
    from .fakes import with_declaration

    return {op: with_declaration(op, generated[op]) for op in (FUSED, MLA_PROLOG, INDEXER_PROLOG)}


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The first derivative of attention."""
    from . import gradient

    return {
        ATTENTION: Autograd(gradient.backward, gradient.setup_context, is_once_differentiable=True)
    }


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The torchair converters; called once torchair is there."""
    from . import converter

    return {
        FUSED: converter.convert_sparse_attention,
        MLA_PROLOG: converter.convert_mla_prolog,
        INDEXER_PROLOG: converter.convert_indexer_prolog,
        ATTENTION: converter.convert_sparse_flash_attention,
        ATTENTION_GRAD: converter.convert_sparse_flash_attention_grad,
    }


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded inputs of each op, by device."""
    from . import samples

    return {
        FUSED: samples.fused_samples,
        MLA_PROLOG: samples.mla_samples,
        INDEXER_PROLOG: samples.indexer_samples,
        ATTENTION: samples.attention_samples,
        ATTENTION_GRAD: samples.gradient_samples,
    }


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """Each op in plain PyTorch, and how to compare with it."""
    from . import attention_comparison, gradient_reference, reference

    return {
        FUSED: Reference(reference.sparse_attention, attention_comparison.compare_fused),
        MLA_PROLOG: Reference(reference.mla_prolog, attention_comparison.compare),
        INDEXER_PROLOG: Reference(reference.indexer_prolog, attention_comparison.compare),
        ATTENTION: Reference(reference.sparse_flash_attention, attention_comparison.compare),
        ATTENTION_GRAD: Reference(
            gradient_reference.sparse_flash_attention_grad, attention_comparison.compare
        ),
    }
