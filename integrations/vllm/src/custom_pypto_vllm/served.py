"""Which models are served, and what is refused before serving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import names
from .choice import AMX, has, missing
from .options import INDEX_CACHE, index_cache_kind

_OPS = ("npu_lightning_indexer_pto", "npu_quant_lightning_indexer", "npu_sparse_flash_attention")
# The architectures that are served, and the ops that they need.
ARCHITECTURES = {
    "DeepseekV32ForCausalLM": _OPS,
    "GlmMoeDsaForCausalLM": _OPS,
    names.V4: (
        "npu_compressor",
        "npu_grouped_matmul",
        "npu_lightning_indexer_v2",
        "npu_mhc_post",
        "npu_mhc_pre",
        "npu_mhc_sinkhorn",
        "npu_sparse_flash_mla",
    ),
}

# Why a configuration is refused, and what to do. Each is true of the configurations it refuses.
_REFUSALS: list[tuple[Callable[[Any], object], str]] = [
    (
        lambda config: not config.model_config.use_mla,
        "without MLA there is no latent cache to select from: unset VLLM_MLA_DISABLE",
    ),
    (
        lambda config: config.model_config.using_transformers_backend(),
        "transformers' own model does not call the ops: remove --model-impl",
    ),
    (
        lambda config: config.use_v2_model_runner,
        "vLLM's second model runner is not supported: set VLLM_USE_V2_MODEL_RUNNER=0",
    ),
    (
        lambda config: config.speculative_config,
        "speculative decoding is not supported: remove --speculative-config",
    ),
    (lambda config: config.lora_config, "LoRA is not supported: remove --enable-lora"),
    (
        lambda config: config.kv_transfer_config,
        "KV connectors are not supported: remove --kv-transfer-config",
    ),
    # vLLM makes a connector of it, but only after this check.
    (
        lambda config: config.cache_config.kv_offloading_size,
        "KV offloading is not supported: remove --kv-offloading-size",
    ),
    (
        lambda config: config.parallel_config.pipeline_parallel_size > 1,
        "pipeline parallel is not supported: use --tensor-parallel-size",
    ),
    (
        lambda config: (
            config.parallel_config.decode_context_parallel_size > 1
            or config.parallel_config.prefill_context_parallel_size > 1
        ),
        "context parallel is not supported: use --tensor-parallel-size",
    ),
    (
        lambda config: is_v4(config) and _caches_another_dtype(config),
        "its caches have the model's dtype: use --kv-cache-dtype auto",
    ),
    (
        lambda config: _caches_another_dtype(config),
        (
            "the latent cache has the model's dtype: use --kv-cache-dtype auto; for a smaller cache"
            f' of index keys, add --additional-config \'{{"{INDEX_CACHE}": "int8"}}\''
        ),
    ),
    (
        lambda config: is_v4(config) and is_quantised(config),
        (
            "vLLM multiplies by quantised weights of DeepSeek-V4 only on CPUs with AMX: convert the"
            " checkpoint to bfloat16, and remove --quantization"
        ),
    ),
    (
        lambda config: is_v4(config) and config.parallel_config.enable_expert_parallel,
        "expert parallel is not supported: remove --enable-expert-parallel",
    ),
    (
        lambda config: is_v4(config) and index_cache_kind(config) != "auto",
        f"its index keys are cached in the model's dtype: remove {INDEX_CACHE}",
    ),
    (
        lambda config: config.attention_config.backend,
        "the attention backend cannot be chosen: remove --attention-backend",
    ),
    (
        lambda config: getattr(config.quant_config, "weight_block_size", None) and not has(AMX),
        (
            "vLLM multiplies by weights in blocks of fp8 only on CPUs with AMX: convert the"
            " checkpoint to bfloat16"
        ),
    ),
]


def serves(config: Any) -> bool:
    """Whether the model of a VllmConfig is served by the ops.

    vLLM's own kernels serve quantised checkpoints of DeepSeek-V4 where the CPU has AMX.
    """
    architectures = getattr(config.model_config, "architectures", ())
    if not any(each in ARCHITECTURES for each in architectures):
        return False
    return not (is_v4(config) and is_quantised(config) and has(AMX))


def is_quantised(config: Any) -> bool:
    """Whether the checkpoint has quantised weights, or vLLM is to quantise them."""
    hf = config.model_config.hf_config
    return bool(config.quant_config or getattr(hf, "quantization_config", None))


def _caches_another_dtype(config: Any) -> bool:
    dtype = f"torch.{config.cache_config.cache_dtype}"
    return dtype not in ("torch.auto", str(config.model_config.dtype))


def is_v4(config: Any) -> bool:
    """Whether the model is DeepSeek-V4."""
    return names.V4 in config.model_config.architectures


def check_supported(config: Any) -> None:
    """Check that a served model can be served as it is configured.

    Raises:
        NotImplementedError: it cannot; one sentence says why and what to do.
        ValueError: an option of this package has an unknown value.
    """
    from . import checkpoint

    model = config.model_config
    mismatch = names.mismatch(names.V4 if is_v4(config) else "")
    if mismatch:
        raise NotImplementedError(mismatch)
    ops = next(filter(None, map(ARCHITECTURES.get, model.architectures)))
    if reasons := [*filter(None, map(missing, ops))]:
        raise NotImplementedError(f"custom_pypto_vllm: {'; '.join(reasons)}")
    refusals: list[Any] = [(*each, config) for each in _REFUSALS]
    refusals += [(*each, model.hf_config) for each in checkpoint.REFUSALS.items()]
    for refused, sentence, about in refusals:
        if refused(about):
            raise NotImplementedError(f"custom_pypto_vllm: {model.architectures[0]}: {sentence}")
    index_cache_kind(config)
