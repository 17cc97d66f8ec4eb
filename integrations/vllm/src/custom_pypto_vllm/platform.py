"""vLLM's platform for CPUs, with sparse attention."""

from __future__ import annotations

import pkgutil
from typing import Any

from . import names
from .served import check_supported, is_v4, serves

# The block size of DeepSeek's own kernels; the ops take any.
BLOCK_SIZE = 128

# CpuPlatform, or the subclass that vLLM chooses on this machine.
_Base: Any = pkgutil.resolve_name(names.cpu_platform_plugin())


class SparseCpuPlatform(_Base):  # type: ignore[misc]
    """Attends with the ops for the models that they serve; else the platform of vLLM."""

    # A release with other arguments still serves every other model: these methods pass on all.
    @classmethod
    def get_attn_backend_cls(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the attention backend of a layer."""
        is_sparse = any(getattr(each, "use_sparse", False) for each in (*args, *kwargs.values()))
        if is_sparse and serves(names.get_current_vllm_config()):
            return "custom_pypto_vllm.attention.SparseBackend"
        return super().get_attn_backend_cls(*args, **kwargs)

    @classmethod
    def check_and_update_config(cls, config: Any, *args: Any, **kwargs: Any) -> None:
        """Check a configuration; vLLM's own kernel for MLA does not limit that of a served model.

        Raises:
            NotImplementedError: the model is served, but not as it is configured.
        """
        if not serves(config):
            super().check_and_update_config(config, *args, **kwargs)
            return
        check_supported(config)
        cache, scheduler = config.cache_config, config.scheduler_config
        block_size = cache.block_size if cache.user_specified_block_size else BLOCK_SIZE
        prefix_caching = cache.enable_prefix_caching
        chunked_prefill = scheduler.enable_chunked_prefill
        batched_tokens = scheduler.max_num_batched_tokens
        super().check_and_update_config(config)
        if not is_v4(config):  # vLLM's pages of DeepSeek-V4 have their size
            cache.block_size = block_size
        cache.enable_prefix_caching = prefix_caching
        scheduler.enable_chunked_prefill = chunked_prefill
        scheduler.max_num_batched_tokens = batched_tokens


def require_our_platform() -> None:
    """Check that vLLM chose the platform above, which checks the configuration of a served model.

    Raises:
        NotImplementedError: it chose another.
    """
    if not isinstance(names.current_platform, SparseCpuPlatform):
        raise NotImplementedError(
            "custom_pypto_vllm: sparse attention needs our platform, but vLLM chose"
            f" {type(names.current_platform).__name__}: unset VLLM_TARGET_DEVICE, let"
            " VLLM_PLUGINS contain custom_pypto, and uninstall other platform plugins"
        )
