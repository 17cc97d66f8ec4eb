"""npu_advance_step_flashattn: what ops.toml cannot say of it, a reference and samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from custom_pypto_plugin import Reference, SampleInput, hookimpl

from .adv_step_flash import adv_step_flash as adv_step_flash
from .ops import *

OP = "npu_advance_step_flashattn"


@hookimpl
def custom_pypto_samples() -> Mapping[str, Callable[[str], Iterable[SampleInput]]]:
    """Seeded inputs, by device."""
    from . import samples

    return {OP: samples.advance_step}


@hookimpl
def custom_pypto_references() -> Mapping[str, Reference]:
    """The op in plain PyTorch."""
    from . import reference

    return {OP: Reference(reference.advance_step)}
