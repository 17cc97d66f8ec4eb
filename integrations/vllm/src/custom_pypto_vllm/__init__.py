"""vLLM serves DeepSeek-V3.2, DeepSeek-V4 and GLM-5 on a CPU, on the ops of custom_pypto.

vLLM finds the two functions here by the entry points of the wheel, and calls them in each of its
processes. Other platforms do not change. Of other models, only products with weights change: those
that vLLM lacks on a CPU, or computes more slowly.
"""

from __future__ import annotations

import logging

__all__ = ["find_platform", "register_layer"]

_logger = logging.getLogger(__name__)


def find_platform() -> str | None:
    """Return the class that replaces vLLM's platform for CPUs.

    None where that does not run, and, with a warning, in a release that is not supported.
    """
    from . import names

    if names.cpu_platform_plugin() is None:
        return None
    mismatch = names.version_mismatch()
    if mismatch:
        _logger.warning(mismatch)
        return None
    return "custom_pypto_vllm.platform.SparseCpuPlatform"


def register_layer() -> None:
    """Replace what is served, whatever the platform of a CPU is; nothing if vLLM lacks a name."""
    from . import names

    if names.current_platform.is_cpu() and names.mismatch() is None:
        from . import grouped_experts, linear_products
        from .int8_products import Int8LinearKernel
        from .layer import SparseAttentionLayer  # noqa: F401
        from .weight_products import WeightQuantLinearKernel

        for each in (grouped_experts, linear_products, Int8LinearKernel, WeightQuantLinearKernel):
            each.register()
        if names.V4 in names.ModelRegistry.get_supported_archs():
            model = f"custom_pypto_vllm.model_of_v4:{names.V4}"
            names.ModelRegistry.register_model(names.V4, model)
