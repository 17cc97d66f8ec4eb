"""The published sizes, data and tolerance. What is expected follows from README.md alone."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import samples
from readme import run_page
from torch import Tensor

pytestmark = pytest.mark.slow
fused = torch.ops.custom_pypto.npu_sparse_attention_pto
Arguments = dict[str, Tensor]

V32 = samples.DEEPSEEK_V32
ROPE, LATENT, BLOCK = V32.rope, V32.latent, V32.block_size

RTOL, ATOL = 0.03, 1e-4
PART, L2 = 0.999, 5e-3
"""How much of a tensor must be close, and how far it may be off as a whole. The published rule is
97 % of the output. But one other key of 2048 moves half of a row's elements, and keys next to the
last chosen one have the same score up to roundings to bf16. So the output is compared for the op's
own selection, and the indexer's test_published.py holds what is selected."""

FOUR = [768, 4097, 8192, 131071]
SIZES: dict[str, tuple[list[int], int]] = {
    "4-of-768-to-128K": (FOUR, 1),
    "4-of-768-to-128K-two-tokens": (FOUR, 2),
    "32-of-8192": ([8192] * 32, 1),
    "48-of-4096": ([4096] * 48, 1),
}
"""act_seqs, and query tokens of each sequence."""


SMALL = ("w_dq", "w_uq_qr", "w_uk", "w_dkv_kr", "sin", "cos")
BOUNDS = {**dict.fromkeys(SMALL, 0.1), "in_beta_k": 0.0}
"""How far from 0 the values are; those of other tensors are up to 1."""


def draw_nothing(data: samples.Data, *shape: int, **_: float) -> Tensor:
    return torch.empty(shape, dtype=data.sizes.dtype)


def arguments(lengths: list[int], tokens: int) -> Arguments:
    """A call without values in its floating-point tensors; the new tokens' slots are anywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples.Data, "normal", draw_nothing)
        given = samples.fused_arguments(replace(V32, lengths=tuple(lengths), tokens=tokens))
    generator = torch.Generator().manual_seed(1)
    slots = torch.randperm(given["kv_cache"].shape[:2].numel(), generator=generator).int()
    return given | {"cache_index": slots[: len(lengths) * tokens].view(-1, tokens)}


def fill(given: Arguments, seed: int) -> Arguments:
    generator = torch.Generator().manual_seed(seed)
    for name, each in given.items():
        if each.is_floating_point():
            bound = BOUNDS.get(name, 1.0)
            each.uniform_(-bound, bound, generator=generator)
    return given


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    return run_page(Path(__file__).parents[1] / "README.md")


@pytest.fixture(scope="module")
def weights() -> Arguments:
    given, kinds = arguments(FOUR, 1), ("w_", "gamma_", "in_")
    made = fill({name: each for name, each in given.items() if name.startswith(kinds)}, seed=0)
    return made | {"in_gamma_k": torch.ones(V32.index_size, dtype=torch.bfloat16)}


def rounded(x: Tensor) -> Tensor:
    """r() of the definition; products and sums are taken in fp32."""
    return x.bfloat16().float()


def define(function: Callable[..., Any], given: Arguments) -> tuple[Tensor, ...]:
    """The results of a function of README.md, for the tokens of all sequences [T, ..]."""
    names = [name for name in inspect.signature(function).parameters if name != "r"]
    of_tokens = {name: given[name].flatten(0, 1) for name in ("x", "sin", "cos")}
    tensors = {name: each.float() for name, each in (given | of_tokens).items() if name in names}
    return function(**tensors, r=rounded)


def call_piece(name: str, given: Arguments) -> tuple[Tensor, ...]:
    op = getattr(torch.ops.custom_pypto, name).default
    return op(*(given[each.name] for each in op._schema.arguments))


def check_close(actual: Tensor, expected: Tensor, what: str, part: float = PART) -> None:
    close = torch.isclose(actual.float(), expected, rtol=RTOL, atol=ATOL).float().mean().item()
    assert close >= part, f"{what}: {close:.3%} of the elements are close; {part:.1%} must be"
    error = ((actual.float() - expected).norm() / expected.norm()).item()
    assert error <= L2, f"{what}: the relative L2 error is {error:.3g}; {L2} is allowed"


@pytest.mark.parametrize("size", SIZES)
def test_published_size(page: dict[str, Any], weights: Arguments, size: str) -> None:
    given = arguments(*SIZES[size])
    given |= fill({name: given[name] for name in given if name not in weights}, seed=1) | weights
    query, query_rope, q_norm, latents, ropes = define(page["mla_prolog"], given)
    index_query, index_weights, index_keys = define(
        page["indexer_prolog"], given | {"q_norm": q_norm}
    )
    keys = {"kv_cache": latents, "kr_cache": ropes[:, 0], "index_k_cache": index_keys[:, 0]}
    slots = given["cache_index"].flatten().long()
    rows = {name: given[name].flatten(0, 2) for name in keys}
    for each in rows.values():
        # A row that the op does not write stays NaN.
        each[slots] = torch.nan
    out = fused(**given).flatten(0, 1)
    for name, expected in keys.items():
        check_close(rows[name][slots], expected, name)

    # The pieces give the same bits.
    q_norm = call_piece("npu_mla_prolog", given)[2]
    index = call_piece("npu_indexer_prolog", given | {"q_norm": q_norm})
    # It is made of a rounded q_norm.
    check_close(index[0].flatten(0, 1), index_query, "the indexer's query", part=0.995)
    check_close(index[1].flatten(0, 1), index_weights, "the indexer's weights")
    selection = torch.ops.custom_pypto.npu_lightning_indexer_pto(
        index[0],
        given["index_k_cache"],
        index[1],
        actual_seq_lengths_key=given["act_seqs"],
        block_table=given["block_table"],
    ).flatten(0, 2)
    tokens = given["x"].shape[1]
    attended = []
    for row, positions in enumerate(selection):
        chosen, table = positions[positions >= 0].long(), given["block_table"][row // tokens]
        slots = table.long()[chosen // BLOCK] * BLOCK + chosen % BLOCK
        selected = (rows[name][slots].float() for name in ("kv_cache", "kr_cache"))
        scale = (LATENT + ROPE) ** -0.5
        attended.append(page["attend"](query[row], query_rope[row], *selected, scale, r=rounded))
    check_close(out, torch.stack(attended), "output")
