"""What decides whether a product is ours: the CPU, the installed ops, vLLM's lists of kernels."""

from __future__ import annotations

import logging
import platform
from typing import Any

import torch

from . import names

AMX, BF16, VNNI = "amx_tile", "avx512_bf16", "avx512_vnni"


def has(instructions: str) -> bool:
    """Whether the CPU has these instructions."""
    return bool(torch.cpu.get_capabilities().get(instructions))


def is_x86_without(instructions: str) -> bool:
    """Whether an x86 CPU lacks them. On Arm, vLLM's products were not compared with ours."""
    return platform.machine() == "x86_64" and not has(instructions)


def ask_for_amx() -> None:
    """Ask Linux for AMX: vLLM's attention does not, and without oneDNN's products nothing would."""
    if has(AMX):
        names._init_amx()


def missing(op: str) -> str | None:
    """Say in one sentence that an op is not installed; None if it is."""
    # Here, so that processes that serve another model load no op.
    import custom_pypto.core  # noqa: F401

    try:
        getattr(torch.ops.custom_pypto, op)
    except AttributeError as error:
        return str(error)
    return None


class OfferedKernel:
    """A kernel of linear layers. vLLM asks it before its own, and that if a layer is not served."""

    theirs: Any
    possible: Any
    reason_against: Any

    @classmethod
    def can_implement(cls, c: Any) -> tuple[bool, str | None]:
        """Return whether a layer is served, and if not, why."""
        is_asked_for = cls.theirs.__name__ in names.VLLM_DISABLED_KERNELS
        reason: str | None = cls.reason_against(c, is_asked_for)
        return reason is None, reason

    @classmethod
    def register(cls) -> None:
        """Put the kernel right before vLLM's: zentorch's, which were not compared, stay first."""
        kernels = cls.possible.get(names.PlatformEnum.CPU, ())
        if cls.theirs not in kernels:
            sentence = "custom_pypto_vllm: vLLM has no %s for CPUs, so our kernel is not offered"
            logging.getLogger(__name__).warning(sentence, cls.theirs.__name__)
        elif cls not in kernels:
            kernels.insert(kernels.index(cls.theirs), cls)
