"""DeepSeek-V4's compressor of keys and values: npu_compressor, its form for training, its gradient.

README.md of the distribution defines the ops.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from custom_pypto_plugin import Autograd, Reference, SampleInput, hookimpl

from .epilog import norm_and_rotate as norm_and_rotate
from .ops import *


@hookimpl
def custom_pypto_autograd() -> Mapping[str, Autograd]:
    """The first derivative of the form for training."""
    from . import gradient

    return {
        "npu_compressor_train": Autograd(
            gradient.backward, gradient.setup_context, is_once_differentiable=True
        )
    }


@hookimpl
def custom_pypto_converters() -> Mapping[str, Callable[..., Any]]:
    """Refusals: CANN has no operator of this form, and its own converter refuses it, too."""
    from custom_pypto_blocks.ge_steps import without_operator

    ops = ("npu_compressor", "npu_compressor_train", "npu_compressor_backward")
    return {op: without_operator(op) for op in ops}


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded calls of each op, by device."""
    from . import samples

    return {
        "npu_compressor": samples.compressor_samples,
        "npu_compressor_train": samples.train_samples,
        "npu_compressor_backward": samples.backward_samples,
    }


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """Each op in plain PyTorch."""
    from . import reference

    return {
        "npu_compressor": Reference(reference.compressor, reference.compare, reference.compare),
        "npu_compressor_train": Reference(reference.train, reference.compare),
        "npu_compressor_backward": Reference(reference.backward, reference.compare),
    }
