"""What is not supported is refused in one sentence, before serving."""

import functools
import re
import sys
from itertools import product
from types import SimpleNamespace as Namespace
from typing import Any

import pytest
import torch

PARALLEL = "pipeline_parallel_size decode_context_parallel_size prefill_context_parallel_size"
V32, V4, GLM = "DeepseekV32ForCausalLM", "DeepseekV4ForCausalLM", "GlmMoeDsaForCausalLM"
UNSET = "speculative_config lora_config kv_transfer_config quant_config"


def make_config(architecture: str = V32, **changes: Any) -> Any:
    """Make a VllmConfig with the fields that are read; changes are named section.field."""
    config = Namespace(
        model_config=Namespace(
            architectures=[architecture],
            dtype=torch.bfloat16,
            hf_config=Namespace(
                architectures=[architecture],
                first_k_dense_replace=1,
                indexer_rope_interleave="Glm" in architecture,
                n_routed_experts=8,
                num_hidden_layers=3,
                scoring_func="sqrtsoftplus" if architecture == V4 else "sigmoid",
                topk_method="noaux_tc",
            ),
            use_mla=True,
            using_transformers_backend=lambda: False,
        ),
        cache_config=Namespace(
            block_size=16,
            cache_dtype="auto",
            enable_prefix_caching=True,
            kv_offloading_size=None,
            user_specified_block_size=False,
        ),
        parallel_config=Namespace(
            enable_expert_parallel=False, **dict.fromkeys(PARALLEL.split(), 1)
        ),
        scheduler_config=Namespace(enable_chunked_prefill=True, max_num_batched_tokens=512),
        attention_config=Namespace(backend=None),
        use_v2_model_runner=False,
        additional_config={},
        **dict.fromkeys(UNSET.split()),
    )
    for path, value in changes.items():
        *sections, field = path.split("__")
        setattr(functools.reduce(getattr, sections, config), field, value)
    return config


@pytest.fixture
def platform(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return our platform over one that restricts a config, as vLLM's does with MLA."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)

    class CpuPlatform:
        @classmethod
        def check_and_update_config(cls, config: Any) -> None:
            config.cache_config.block_size = 16
            config.cache_config.enable_prefix_caching = False
            config.scheduler_config.enable_chunked_prefill = False
            config.scheduler_config.max_num_batched_tokens = 10**6

        @classmethod
        def get_attn_backend_cls(
            cls, selected_backend: Any, attn_selector_config: Any, num_heads: Any = None
        ) -> str:
            return "theirs"

    vllm.module("vllm.platforms").cpu_platform_plugin = lambda: "vllm.platforms.zen.OfMachine"
    vllm.module("vllm.platforms.zen").OfMachine = CpuPlatform
    import custom_pypto_vllm.platform as module

    return module.SparseCpuPlatform


AWQ, LINEAR = {"quant_method": "awq"}, {"targets": ["Linear"]}
TWO_LAYERS = [f"model.layers.{i}.self_attn.kv_b_proj" for i in (0, 1)]


def quantised(bits: int, *ignored: str, **more: Any) -> dict[str, Any]:
    """Return what compressed-tensors writes into config.json, by default of integer weights."""
    group = LINEAR | {"weights": {"type": "int", "num_bits": bits} | more}
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head", *ignored],
    }


def with_inputs(**inputs: Any) -> dict[str, Any]:
    """Return what is written of 8 bits with quantised activations, without the experts."""
    group = LINEAR | {"weights": {"num_bits": 8}, "input_activations": {"num_bits": 8} | inputs}
    return quantised(8, EXPERTS) | {"config_groups": {"0": group}}


EXPERTS, KV_B_PROJ = "re:.*mlp[.]experts", "re:.*kv_b_proj"
QUANTISED = "model_config__hf_config__quantization_config"
FOUR_BITS = quantised(4, EXPERTS, KV_B_PROJ)
BLOCKS_OF_FP8 = Namespace(weight_block_size=[128, 128])
KEPT = "modules_to_not_convert"
AWQ_OF_DENSE: dict[str, Any] = AWQ | {"bits": 4, "group_size": 128, KEPT: ["experts"]}
PACKED = {"format": "pack-quantized"}
FP8 = {"quant_method": "fp8"}
FP8_BLOCKS = FP8 | {"weight_block_size": [128, 128]}
FLOAT_BLOCKS = quantised(8, EXPERTS, type="float", strategy="block")

EIGHT, FOUR = (
    "leave mlp.experts in 16 bits",
    "such weights of 4 bits: use groups of a multiple of 32",
)
ROUTER = "set scoring_func to sigmoid and topk_method to noaux_tc"
ROTATES = "indexer_rope_interleave must be true for GLM-5"
FIELD = "model_config__hf_config__"
# What a configuration has, and what the refusal says to do.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model_config__use_mla": False}, "unset VLLM_MLA_DISABLE"),
    ({"model_config__using_transformers_backend": lambda: True}, "remove --model-impl"),
    ({"use_v2_model_runner": True}, "set VLLM_USE_V2_MODEL_RUNNER=0"),
    ({"speculative_config": object()}, "remove --speculative-config"),
    ({"lora_config": object()}, "remove --enable-lora"),
    ({"kv_transfer_config": object()}, "remove --kv-transfer-config"),
    ({"cache_config__kv_offloading_size": 4.0}, "remove --kv-offloading-size"),
    ({"parallel_config__pipeline_parallel_size": 2}, "use --tensor-parallel-size"),
    ({"parallel_config__prefill_context_parallel_size": 2}, "use --tensor-parallel-size"),
    ({"cache_config__cache_dtype": "fp8"}, "use --kv-cache-dtype auto"),
    ({"attention_config__backend": "CPU_MLA"}, "remove --attention-backend"),
    ({"quant_config": BLOCKS_OF_FP8}, "convert the checkpoint to bfloat16"),
    # The checkpoint's config.json.
    ({f"{FIELD}indexer_rope_interleave": True}, ROTATES),
    ({f"{FIELD}scoring_func": "softmax"}, ROUTER),
    ({f"{FIELD}topk_method": None}, ROUTER),
    ({QUANTISED: quantised(8)}, EIGHT),
    ({QUANTISED: quantised(8, strategy="channel") | PACKED}, EIGHT),
    ({QUANTISED: quantised(8, EXPERTS)}, "leave kv_b_proj in 16 bits"),
    ({QUANTISED: quantised(8, EXPERTS, *TWO_LAYERS)}, "leave kv_b_proj in 16 bits"),
    ({QUANTISED: with_inputs(dynamic=False)}, "leave kv_b_proj in 16 bits"),
    ({QUANTISED: with_inputs(dynamic=True, symmetric=False)}, "leave kv_b_proj in 16 bits"),
    ({QUANTISED: FOUR_BITS}, FOUR),
    ({QUANTISED: AWQ_OF_DENSE | {"group_size": 16}}, "leave kv_b_proj in 16 bits"),
    ({QUANTISED: AWQ_OF_DENSE | {"group_size": 16, KEPT: ["kv_b_proj", "experts"]}}, FOUR),
    ({QUANTISED: FP8_BLOCKS}, EIGHT),
    ({QUANTISED: quantised(8, type="float", strategy="channel")}, EIGHT),
    ({QUANTISED: FLOAT_BLOCKS}, "convert the checkpoint to bfloat16"),
    # AWQ's older key, and weights whose type is the default.
    ({QUANTISED: AWQ | {"w_bit": 4}}, EIGHT),
    ({QUANTISED: {"config_groups": {"0": LINEAR | {"weights": {"num_bits": 8}}}}}, EIGHT),
]


def refusal(platform: Any, config: Any, error: type[Exception] = NotImplementedError) -> str:
    with pytest.raises(error) as caught:
        platform.check_and_update_config(config)
    return str(caught.value)


OF_FAMILIES: list[tuple[str, dict[str, Any], str]] = [
    *((V32, *row) for row in REFUSED),
    (GLM, {f"{FIELD}indexer_rope_interleave": False}, ROTATES),
    (GLM, {f"{FIELD}indexer_rope_interleave": None}, ROTATES),
    (V4, {"parallel_config__enable_expert_parallel": True}, "remove --enable-expert-parallel"),
    (V4, {"additional_config": {"custom_pypto_index_cache": "int8"}}, "remove custom_pypto_index"),
    (V4, {f"{FIELD}scoring_func": "sigmoid"}, "set scoring_func to sqrtsoftplus"),
    (V4, {QUANTISED: FP8_BLOCKS}, "convert the checkpoint to bfloat16"),
]


@pytest.mark.parametrize(("architecture", "changes", "remedy"), OF_FAMILIES)
def test_a_setting_or_checkpoint_is_refused_that_another_model_may_have(
    platform: Any, architecture: str, changes: dict[str, Any], remedy: str
) -> None:
    text = refusal(platform, make_config(architecture, **changes))
    assert re.fullmatch(f"custom_pypto_vllm: {architecture}: .*{remedy}.*", text)
    other = make_config("DeepseekV3ForCausalLM", **changes)
    platform.check_and_update_config(other)
    assert not other.cache_config.enable_prefix_caching  # as vLLM says


def test_floats_where_the_cpu_has_amx(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM's own kernels serve DeepSeek-V4's; without blocks there are none for another model."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_tile": True})
    for bits in (4, 8):
        assert EIGHT in refusal(platform, make_config(**{QUANTISED: quantised(bits, type="float")}))
    theirs = make_config(V4, **{QUANTISED: FP8})
    platform.check_and_update_config(theirs)
    assert not theirs.cache_config.enable_prefix_caching


OPTIONS = [
    ("custom_pypto_index_cache", "int4", "must be one of 'auto', 'int8', got 'int4'"),
    ("custom_pypto_indexcache", "int8", "no option 'custom_pypto_indexcache'; it has custom_pypto"),
]


@pytest.mark.parametrize(("option", "value", "message"), OPTIONS)
def test_a_wrong_option_is_refused(platform: Any, option: str, value: str, message: str) -> None:
    config = make_config(additional_config={option: value, "of_another": 1})
    assert message in refusal(platform, config, ValueError)


def test_missing_ops_are_explained(platform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from custom_pypto_vllm import served

    monkeypatch.setitem(served.ARCHITECTURES, V32, ("npu_lightning_indexer_pto", "npu_a", "npu_b"))
    text = refusal(platform, make_config())
    explained = "no op '{}'.*is a wheel of its own.*"
    pattern = explained.format("npu_a") + explained.format("npu_b")
    assert re.match(f"custom_pypto_vllm: .* {pattern}", text)


SERVED: list[dict[str, Any]] = [
    {},
    {QUANTISED: quantised(8, EXPERTS, KV_B_PROJ)},
    # On our product by integers, whatever the CPU is.
    {QUANTISED: AWQ_OF_DENSE},
    {QUANTISED: quantised(8, EXPERTS) | PACKED},
    {QUANTISED: quantised(4, EXPERTS, strategy="channel") | PACKED},
    {QUANTISED: with_inputs(dynamic=True)},
    {QUANTISED: quantised(4, strategy="group", group_size=64) | PACKED},
    # A dense model needs no fields of experts.
    {f"{FIELD}first_k_dense_replace": 3, f"{FIELD}topk_method": None},
    {"cache_config__cache_dtype": "bfloat16"},
    {QUANTISED: FP8 | {"ignored_layers": ["mlp.experts"]}},
    # Where the CPU has AMX, or vLLM the product.
    {"quant_config": BLOCKS_OF_FP8, QUANTISED: FP8_BLOCKS},
    {QUANTISED: FOUR_BITS},
    {"cache_config__user_specified_block_size": True, "cache_config__block_size": 48},
]


@pytest.mark.parametrize(("architecture", "changes"), [*product((V32, GLM), SERVED), (V4, {})])
def test_served_models_have_no_limits_of_vllms_own_kernel(
    platform: Any, monkeypatch: pytest.MonkeyPatch, architecture: str, changes: dict[str, Any]
) -> None:
    capabilities = {"amx_tile": "quant_config" in changes}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    if FOUR_BITS in changes.values():
        monkeypatch.setattr(torch.ops._C, "cpu_gemm_wna16", object(), raising=False)
    config = make_config(architecture, **changes)
    platform.check_and_update_config(config)
    size = changes.get("cache_config__block_size", 16 if architecture == V4 else 128)
    assert config.cache_config.block_size == size
    assert config.cache_config.enable_prefix_caching
    assert config.scheduler_config.enable_chunked_prefill
    assert config.scheduler_config.max_num_batched_tokens == 512


def test_a_vllm_that_does_not_fit_refuses_served_models_only(platform: Any, vllm: Any) -> None:
    vllm.module("vllm").__version__ = "0.99.0"
    with pytest.raises(NotImplementedError, match=r"vLLM 0\.99\.0 is not supported"):
        platform.check_and_update_config(make_config())
    platform.check_and_update_config(make_config("LlamaForCausalLM"))


@pytest.mark.parametrize(
    ("architecture", "sparse", "backend"),
    [
        (GLM, True, "custom_pypto_vllm.attention.SparseBackend"),
        (GLM, False, "theirs"),
        ("DeepseekV3ForCausalLM", True, "theirs"),
    ],
)
def test_sparse_attention_of_served_models_is_ours(
    platform: Any, vllm: Any, architecture: str, sparse: bool, backend: str
) -> None:
    vllm.module("vllm.config").get_current_vllm_config = lambda: make_config(architecture)
    selector = Namespace(use_sparse=sparse)
    assert platform.get_attn_backend_cls(None, attn_selector_config=selector) == backend


def test_another_model_is_served_by_a_vllm_with_other_arguments(
    platform: Any, vllm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def theirs(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    base = platform.__mro__[1]
    monkeypatch.setattr(base, "check_and_update_config", theirs)
    monkeypatch.setattr(base, "get_attn_backend_cls", theirs)
    vllm.module("vllm.config").get_current_vllm_config = lambda: make_config("LlamaForCausalLM")
    chosen = Namespace(use_sparse=True)
    assert platform.get_attn_backend_cls(chosen, more=1) == ((chosen,), {"more": 1})
    assert platform.check_and_update_config(make_config("LlamaForCausalLM"), 2, more=1) is None


def test_the_layer_of_another_model_is_vllms_own(platform: Any, vllm: Any) -> None:
    class Wrapper:
        @classmethod
        def register_oot(cls, ours: Any) -> Any:
            return ours

        def __init__(self, size: int, *, prefix: str) -> None:
            self.made = size, prefix

    vllm.module("vllm.model_executor.layers.mla").MultiHeadLatentAttentionWrapper = Wrapper
    vllm.module("vllm.config").get_current_vllm_config = lambda: make_config("LlamaForCausalLM")
    from custom_pypto_vllm.layer import SparseAttentionLayer

    layer = SparseAttentionLayer(1, prefix="x")
    assert type(layer) is Wrapper
    assert layer.made == (1, "x")


def test_no_platform_where_vllm_does_not_run_on_a_cpu(vllm: Any) -> None:
    import custom_pypto_vllm

    vllm.module("vllm.platforms").cpu_platform_plugin = lambda: None
    assert custom_pypto_vllm.find_platform() is None
    vllm.module("vllm.platforms").current_platform = Namespace(is_cpu=lambda: False)
    custom_pypto_vllm.register_layer()
    assert "custom_pypto_vllm.layer" not in sys.modules
