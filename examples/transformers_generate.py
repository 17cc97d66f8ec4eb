"""Generate with the attention of transformers and with ours, and compare tokens and speed.

`tox -e transformers` builds and installs everything that it needs, and runs it.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from custom_pypto_transformers.growing_cache import CACHE
from torch import Tensor
from tqdm import tqdm
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, DynamicCache

from examples import program

OURS = "custom_pypto"
CONTEXTS = [512, 1024, 2048, 4096, 8192, 16384]

OWN_PROMPT = 1024
"""Up to this length each implementation prefills itself. For eager and sdpa the cost grows with the
square of the length, so longer prompts are prefilled by custom_pypto alone."""

CHUNK = 1024
"""Tokens of a prefill chunk."""

_SIZES = {
    "vocab_size": 512,
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 3,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": 192,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    # With few heads, many scores are exactly zero: which of these keys are selected is arbitrary.
    "index_n_heads": 64,
    "index_head_dim": 32,
    "index_topk": 256,
}
_VISION = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32}
_INDEXED = {"n_group": 1, "indexer_types": ["full"] * 3}
MODELS: dict[str, dict[str, Any]] = {
    "deepseek_v32": {**_SIZES, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
    "deepseek_v4": {
        **_SIZES,
        "num_key_value_heads": 1,
        "head_dim": 128,
        "o_groups": 4,
        "o_lora_rank": 128,
        "index_topk": 64,
        "layer_types": [
            "sliding_attention",
            "compressed_sparse_attention",
            "heavily_compressed_attention",
        ],
        "mlp_layer_types": ["moe"] * 3,
        "moe_intermediate_size": 256,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
    },
    "glm5_next": {
        **_SIZES,
        "qk_rope_head_dim": 0,
        "linear_head_dim": 32,
        "linear_num_heads": 4,
        "layer_types": ["linear_attention", "indexed_attention", "indexed_attention"],
        **_INDEXED,
        "index_kpool": 4,
    },
    "hy_v4": {**_SIZES, **_INDEXED},
    "mistral_large4": {
        **_SIZES,
        **_INDEXED,
        "no_rope_layers": [1, 0, 1],
        "kv_source_layers": [0, 1, 2],
    },
    "dots3_note_text": {
        **_SIZES,
        "head_dim": 96,
        "layer_types": ["indexed_attention", "sliding_attention", "indexed_attention"],
        "swa_num_attention_heads": 4,
        "swa_num_key_value_heads": 4,
        "swa_q_lora_rank": 96,
        "swa_kv_lora_rank": 64,
    },
}


def make_model(family: str, seed: int) -> Any:
    """Return a model with seeded weights in fp32, so that the order of additions changes no token.

    It has no experts where its family can be without.
    """
    fields: dict[str, Any] = {
        "mlp_layer_types": ["dense"] * _SIZES["num_hidden_layers"],
        # With a range larger than usual attention matters.
        "initializer_range": 0.1,
        "pad_token_id": 0,
        "eos_token_id": None,
        **MODELS[family],
    }
    made: Any = AutoModelForCausalLM
    if family in ("glm5_next", "mistral_large4"):
        made = AutoModelForImageTextToText
        vision = {**_VISION, "out_hidden_size": _SIZES["hidden_size"]}
        fields = {"text_config": fields, "vision_config": vision}
    config = AutoConfig.for_model(family, **fields)
    torch.manual_seed(seed)
    return made.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()


def implementations(model: Any) -> tuple[str, ...]:
    """Return the attentions that transformers has for a model, and ours."""
    return ("eager", *["sdpa"] * model._supports_sdpa, OURS)


@dataclass(frozen=True)
class Generated:
    """The tokens of one implementation after one prompt, and their time."""

    context: int
    implementation: str
    tokens: tuple[int, ...]
    seconds: float
    """For each token."""


@torch.inference_mode()
def generate(model: Any, prompt: Tensor, contexts: list[int], tokens: int) -> Iterator[Generated]:
    """Yield what each implementation generates greedily after the first tokens of a prompt.

    Args:
        prompt: [1, T], at least as long as the longest context.
        contexts: how many tokens of it, in rising order.
        tokens: how many to generate.
    """
    long = DynamicCache(config=model.config)
    for context in contexts:
        prefilled_by_ours = context > OWN_PROMPT
        if prefilled_by_ours:
            _prefill(model, OURS, prompt[:, : context - 1], long)
        for implementation in implementations(model):
            cache = copy.deepcopy(long) if prefilled_by_ours else DynamicCache(config=model.config)
            _prefill(model, implementation, prompt[:, : context - 1], cache)
            options = {CACHE: cache, "max_new_tokens": tokens, "do_sample": False}
            start = time.perf_counter()
            out = model.generate(prompt[:, :context], **options)
            seconds = (time.perf_counter() - start) / tokens
            yield Generated(context, implementation, tuple(out[0, context:].tolist()), seconds)


def _prefill(model: Any, implementation: str, prompt: Tensor, cache: DynamicCache) -> None:
    """Prefill the part of a prompt that the cache does not hold."""
    model.set_attn_implementation(implementation)
    for begin in range(cache.get_seq_length(), prompt.shape[1], CHUNK):
        model(prompt[:, begin : begin + CHUNK], **{CACHE: cache}, logits_to_keep=1)


def find_differing(results: list[Generated]) -> list[Generated]:
    """Return the results whose tokens differ from eager's."""
    right = {made.context: made.tokens for made in results if made.implementation == "eager"}
    return [made for made in results if made.tokens != right[made.context]]


def table(results: list[Generated]) -> Iterator[str]:
    """Yield the lines of the table of speed and equality, one for each context."""
    wrong = find_differing(results)
    names = list(dict.fromkeys(each.implementation for each in results))
    others = [name for name in names if name != OURS]
    headings = (*names, *(f"{name} / ours" for name in others), "ours = eager")
    yield f"{'tokens/s':>8}" + "".join(f"{each:>16}" for each in headings)
    for context in dict.fromkeys(each.context for each in results):
        made = {each.implementation: each for each in results if each.context == context}
        cells = [f"{1 / made[name].seconds:.1f}" for name in names]
        cells += [f"{made[name].seconds / made[OURS].seconds:.1f}x" for name in others]
        cells.append("differ" if made[OURS] in wrong else f"all {len(made[OURS].tokens)}")
        yield f"{context:>8,}" + "".join(f"{each:>16}" for each in cells)


def main(arguments: list[str] | None = None) -> None:
    """Run the example."""
    parser = program.make_parser("transformers_generate", __doc__)
    parser.add_argument("--model", choices=MODELS, default="deepseek_v32")
    parser.add_argument(
        "--contexts",
        nargs="+",
        type=program.positive,
        default=CONTEXTS,
        metavar="N",
        help=f"lengths of the prompt (default: {' '.join(map(str, CONTEXTS))})",
    )
    program.add_number(parser, "--tokens", 16, "how many to generate after each")
    program.add_seed(parser)
    _compare(parser.parse_args(arguments))


def _compare(options: argparse.Namespace) -> None:
    contexts = sorted(set(options.contexts))
    tokens = options.tokens
    model = make_model(options.model, options.seed)
    names = implementations(model)
    program.title(f"Generate {tokens} tokens by {', '.join(names)}")
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"  model     {type(model).__name__}, {weights / 1e6:.1f} M random weights, fp32")
    print(f"  prompts   {', '.join(f'{context:,}' for context in contexts)} tokens", flush=True)
    generator = torch.Generator().manual_seed(options.seed)
    prompt = torch.randint(1, _SIZES["vocab_size"], (1, contexts[-1]), generator=generator)
    made = list(tqdm(generate(model, prompt, contexts, tokens), total=len(contexts) * len(names)))

    print("\n" + "\n".join(f"  {line}" for line in table(made)))
    if contexts[-1] > OWN_PROMPT:
        print(f"\n  prompts above {OWN_PROMPT:,} tokens are prefilled by custom_pypto for all")
    wrong = [f"{each.implementation} at {each.context:,}" for each in find_differing(made)]
    if wrong:
        raise SystemExit(
            f"tokens differ from eager's ({', '.join(wrong)}). Scores that are nearly equal can do"
            " that; if it happens with another --seed, too, please report it"
        )


if __name__ == "__main__":
    main()
