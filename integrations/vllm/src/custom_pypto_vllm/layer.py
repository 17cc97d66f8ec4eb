"""vLLM's attention layer, with our parts for the models that the ops serve."""

from __future__ import annotations

import inspect
from typing import Any

from .names import MultiHeadLatentAttentionWrapper, current_platform, get_current_vllm_config
from .platform import SparseCpuPlatform
from .served import serves

_SIGNATURE = inspect.signature(MultiHeadLatentAttentionWrapper.__init__)


@MultiHeadLatentAttentionWrapper.register_oot
class SparseAttentionLayer(MultiHeadLatentAttentionWrapper):  # type: ignore[misc]
    """The layer of a served model. vLLM makes it for every model with MLA."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not serves(get_current_vllm_config()):
            super().__init__(*args, **kwargs)
            return
        if not isinstance(current_platform, SparseCpuPlatform):
            raise NotImplementedError(
                "custom_pypto_vllm: sparse attention needs our platform, but vLLM chose"
                f" {type(current_platform).__name__}: unset VLLM_TARGET_DEVICE, let VLLM_PLUGINS"
                " contain custom_pypto, and uninstall other platform plugins"
            )
        # Here, so that processes that serve another model load no op.
        from .modules import replace_modules

        call = _SIGNATURE.bind(self, *args, **kwargs)
        call.arguments["mla_modules"] = replace_modules(call.arguments["mla_modules"])
        super().__init__(*call.args[1:], **call.kwargs)
