"""Attention of DeepSeek-V4 to windows and compressed rows: npu_sparse_flash_mla and its gradient.

README.md of the distribution defines the ops in PyTorch. This module contributes what torch needs
beyond the library: fakes, the derivative, sample inputs and references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl

from .ops import *

ATTENTION = "npu_sparse_flash_mla"
ATTENTION_GRAD = "npu_sparse_flash_mla_grad"
METADATA = "npu_sparse_flash_mla_metadata"


@hookimpl
def custom_pypto_kernels() -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """The kernel of metadata without a tensor, which belongs to no device."""
    from . import fakes

    return {METADATA: {"CompositeExplicitAutograd": fakes.metadata_of_no_tensor}}


@hookimpl
def custom_pypto_fakes() -> Mapping[str, Callable[..., Any]]:
    """The fakes that the contract cannot give."""
    from . import fakes

    return {ATTENTION_GRAD: fakes.gradients, METADATA: fakes.metadata}


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The first derivative of attention."""
    from . import gradient

    return {
        ATTENTION: Autograd(gradient.backward, gradient.setup_context, is_once_differentiable=True)
    }


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """The torchair converters that are no line of ops.toml; called once torchair is there."""
    from custom_pypto_blocks.ge_steps import without_operator

    from . import converter

    # CANN's operator of metadata wants to know the NPU's cores.
    return {ATTENTION_GRAD: converter.convert_grad, METADATA: without_operator(METADATA)}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded inputs of each op, by device."""
    from . import samples

    return {
        ATTENTION: samples.samples,
        ATTENTION_GRAD: samples.gradient_samples,
        METADATA: samples.metadata_samples,
    }


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """Each op in plain PyTorch, and how to compare with it."""
    from . import comparison, reference

    return {
        ATTENTION: Reference(reference.sparse_flash_mla, comparison.compare),
        ATTENTION_GRAD: Reference(reference.sparse_flash_mla_grad, comparison.compare_gradients),
        METADATA: Reference(reference.sparse_flash_mla_metadata, comparison.compare_metadata),
    }
