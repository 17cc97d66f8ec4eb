"""What vLLM's registry has for DeepSeek-V4: our model, or vLLM's where the ops do not fit it."""

from importlib import import_module
from typing import Any

from . import names

# `check_supported` says what does not fit, unless vLLM's own kernels serve the checkpoint.
_OURS = f"{__package__}.deepseek_v4"
DeepseekV4ForCausalLM: Any = getattr(
    import_module(names.MODULE_OF_V4 if names.mismatch(names.V4) else _OURS), names.V4
)
