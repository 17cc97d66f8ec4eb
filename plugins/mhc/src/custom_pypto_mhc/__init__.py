"""The ops of manifold-constrained hyper-connections: npu_mhc_pre, npu_mhc_sinkhorn, npu_mhc_post.

README.md of the distribution defines every op in PyTorch; ops.toml is their contract.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl

from .ops import *


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The first derivatives, which the `_backward` ops compute."""
    from . import gradients

    return {
        op: Autograd(backward, setup_context=setup_context, is_once_differentiable=True)
        for op, (setup_context, backward) in gradients.OF_OPS.items()
    }


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """Refusals: CANN's operators of these ops have other outputs."""
    from custom_pypto_blocks.ge_steps import without_operator

    ops = ("npu_mhc_pre", "npu_mhc_sinkhorn")
    return {op: without_operator(op) for each in ops for op in (each, f"{each}_backward")}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded inputs of each op, by device."""
    from . import samples

    return samples.OF_OPS


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """Each op in plain PyTorch, and how to compare with it."""
    from . import reference

    return {op: Reference(of_op, reference.compare) for op, of_op in reference.OF_OPS.items()}
