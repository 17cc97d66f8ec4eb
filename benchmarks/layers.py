"""Time a token or a prompt through a layer of transformers' models, with our ops and PyTorch's.

Run from the root of the repository with `tox -e wheels,transformers-bench`. Weights, and the rows
that the caches hold, are random; sizes are the released ones. README.md beside this file says how
to read the table.
"""

from __future__ import annotations

import argparse
import copy
import gc
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from custom_pypto_testing.timing.interleaved import Timed, time_interleaved
from custom_pypto_testing.timing.measured import Measured, of_peak, ratio_of, spread, time_of
from custom_pypto_testing.timing.peaks import Work, at_peak, find_peaks
from custom_pypto_testing.timing.peaks import timed as peak_calls
from custom_pypto_transformers import expanded_keys, use_linear
from custom_pypto_transformers.growing_cache import CACHE, GrowingCache
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, AutoConfig, AutoModel
from transformers.masking_utils import eager_mask

from benchmarks.run import Run, add_output

OURS, FOLDED, LINEAR, ABSORBED = "custom_pypto", "folded", "use_linear", "absorbed"
CONTEXTS = (4096, 16384, 65536, 262144, 1048576)
_COLUMNS = {
    "ours": time_of("ours"),
    "spread": spread,
    "of reading": of_peak,
    **{f"{name}/ours": ratio_of(name) for name in ("eager", FOLDED, LINEAR, ABSORBED)},
}


@dataclass(frozen=True)
class Layer:
    """A kind of layer, and up to which contexts PyTorch's attention is timed."""

    name: str
    make_config: Callable[[], Any]
    fill: Callable[[Any, Any, int, torch.dtype], int]
    """Fills a cache's layer for a number of tokens; returns how many bytes of it a step reads."""
    eager: int
    """Beyond this context, transformers' eager takes seconds."""
    folded: int = 0
    """The same for `fold`; 0 if the heads share no keys."""


def fold(
    module: Any, query: Tensor, keys: Tensor, _: Tensor, mask: Tensor | None, **kwargs: Any
) -> tuple[Tensor, None]:
    """Attend from one token [B, N, 1, D] to keys [B, 1, T, D], which are the values, too.

    transformers' eager repeats the keys for each of the N heads. This is one product for all.
    """
    scores = query[:, :, 0] @ keys[:, 0].mT * kwargs["scaling"]
    if mask is not None:
        scores = scores + mask[:, 0]
    scores = torch.cat([scores, module.sinks[:, None].expand(len(query), -1, 1)], -1)
    weights = scores.softmax(-1, dtype=torch.float32)[..., :-1].to(keys.dtype)
    return (weights @ keys[:, 0])[:, None], None


def fill_compressed(layer: Any, config: Any, tokens: int, dtype: torch.dtype) -> int:
    """Fill a layer of DeepSeek-V4: the window, and the rows of the tokens before it."""
    window = torch.randn(1, 1, config.sliding_window - 1, config.head_dim, dtype=dtype)
    layer.update(window, window)
    layer.cumulative_length = tokens
    read = window.nbytes
    sizes = {"compressor": config.head_dim, "indexer": config.index_head_dim}
    names = getattr(layer, "compressed_kv", {})
    for name in names:
        count = tokens // layer.compress_rate
        layer.compressed_kv[name] = rows = torch.randn(1, count, sizes[name], dtype=dtype)
        layer.entry_count[name] = count
        is_selected = name == "compressor" and "indexer" in names
        read += rows[:, : config.index_topk if is_selected else count].nbytes
    return read


def fill_indexed(layer: Any, config: Any, tokens: int, dtype: torch.dtype) -> int:
    """Fill a layer that selects tokens: latents, rope's part of the keys, keys of the indexer."""
    latents, rope, keys = (
        torch.randn(1, tokens, size, dtype=dtype)
        for size in (config.kv_lora_rank, config.qk_rope_head_dim, config.index_head_dim)
    )
    layer.update(latents[:, None], rope[:, None])
    pool = getattr(config, "index_kpool", 0)
    # Beside each key, GLM-5.3 keeps its weight in its pool, and whether it is no padding.
    layer.update_indexer(
        torch.cat([keys, keys, torch.ones_like(keys[..., :1])], -1) if pool else keys
    )
    selected = (each[:, : config.index_topk] for each in (latents, rope))
    return keys.nbytes // (pool or 1) + sum(each.nbytes for each in selected)


def _config(family: str, **changes: object) -> Any:
    # The MLP, which all implementations share, is small.
    sizes = {"intermediate_size": 64, "moe_intermediate_size": 64, "vocab_size": 64}
    types = {"num_hidden_layers": 1, "mlp_layer_types": ["dense"], "pad_token_id": 0}
    return AutoConfig.for_model(family, **{**sizes, **types, **changes})


def _compressed(kind: str) -> Any:
    experts = {"n_routed_experts": 2, "num_experts_per_tok": 1, "mlp_layer_types": ["moe"]}
    return _config("deepseek_v4", layer_types=[kind], **experts)


def _pooled(pool: int) -> Any:
    kinds = {"layer_types": ["indexed_attention"], "indexer_types": ["full"]}
    return _config("glm5_next_text", index_kpool=pool, **kinds)


LAYERS = (
    Layer("DeepSeek-V3.2", partial(_config, "deepseek_v32"), fill_indexed, 4096),
    Layer("GLM-5", partial(_config, "glm_moe_dsa"), fill_indexed, 4096),
    *(
        Layer(f"DeepSeek-V4 {name}", partial(_compressed, kind), fill_compressed, 65536, 1048576)
        for name, kind in (
            ("CSA", "compressed_sparse_attention"),
            ("HCA", "heavily_compressed_attention"),
            ("sliding", "sliding_attention"),
        )
    ),
    *(Layer(f"GLM-5.3 kpool {n}", partial(_pooled, n), fill_indexed, 16384) for n in (4, 16)),
)


def measure(
    layer: Layer, context: int, dtype: torch.dtype, seconds: float, prefill: bool
) -> Measured:
    """Time the token after `context` others, or all of these, with each implementation."""
    torch.manual_seed(0)
    config = layer.make_config()
    model = AutoModel.from_config(config, dtype=dtype, attn_implementation=OURS).eval()
    cache = GrowingCache(config=config)
    work: tuple[Work, ...] = ()
    token = torch.randint(1, 64, (1, context)) if prefill else torch.ones(1, 1, dtype=torch.int64)
    if not prefill:
        read = layer.fill(cache.layers[0], config, context, dtype)
        read += sum(each.nbytes for each in model.layers[0].self_attn.parameters())
        work = (Work(0, read),)

    with_linear = copy.deepcopy(model)
    use_linear(with_linear)

    def timed(name: str) -> Timed:
        kept = {"use_cache": False} if prefill else {CACHE: copy.deepcopy(cache)}
        if name == LINEAR:
            return Timed(lambda: with_linear(token, **kept))
        if name == ABSORBED:
            absorbed: Any = patch.object(expanded_keys, "chunks_that_pay", lambda *_: [])
            return Timed(
                absorbed(lambda: model(token, **kept)), lambda: model.set_attn_implementation(OURS)
            )
        return Timed(lambda: model(token, **kept), lambda: model.set_attn_implementation(name))

    limits = {OURS: context, LINEAR: context, "eager": 1024 if prefill else layer.eager}
    limits |= {ABSORBED: context} if prefill else {FOLDED: layer.folded}
    calls = {name: timed(name) for name, limit in limits.items() if context <= limit}
    peaks = find_peaks(work, None, dtype)
    with torch.inference_mode():
        times = time_interleaved(calls | peak_calls(peaks), seconds, least=2 if prefill else 5)
    own = {"ours" if name == OURS else name: times[name] for name in calls}
    size = f"{context // 1024}K, {str(dtype).removeprefix('torch.')}"
    return Measured(layer.name, size, own, at_peak(work, peaks, times), torch.get_num_threads())


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser("benchmarks.layers", description=__doc__)
    add_output(parser)
    parser.add_argument("--contexts", nargs="+", type=int, default=CONTEXTS, metavar="TOKENS")
    parser.add_argument("--only", default="", metavar="TEXT", help="layers whose name has TEXT")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    parser.add_argument("--prefill", action="store_true", help="time prompts of these lengths")
    parser.add_argument("--seconds", type=float, default=3, help="of each row (default: 3)")
    options = parser.parse_args(arguments)
    AttentionInterface.register(FOLDED, fold)
    AttentionMaskInterface.register(FOLDED, eager_mask)
    run = Run(options.output, "ours, and how many times longer the others take", _COLUMNS)
    for layer in LAYERS:
        for context in options.contexts if options.only in layer.name else ():
            dtype = getattr(torch, options.dtype)
            run.add(measure(layer, context, dtype, options.seconds, options.prefill))
            gc.collect()


if __name__ == "__main__":
    main()
