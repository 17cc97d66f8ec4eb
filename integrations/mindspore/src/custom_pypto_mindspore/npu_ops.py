"""Ops under the names and with the argument orders that vllm-mindspore publishes."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any

import torch

from .op import Op


class _AdvStepFlash(Op):
    """Calls the op with the arguments of `custom_pypto_advance_step.adv_step_flash`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Prepare the next step of decoding, in place."""
        return super().__call__(**self._signature.bind(*args, **kwargs).arguments)

    @cached_property
    def _signature(self) -> inspect.Signature:
        # Without the plugin, this says how to install it.
        getattr(torch.ops.custom_pypto, self.name)
        from custom_pypto_advance_step import adv_step_flash as of_torch

        return inspect.signature(of_torch)


adv_step_flash = _AdvStepFlash("npu_advance_step_flashattn")
