"""Engines' calls, with another namespace, return the results that the ops' references define."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import custom_pypto.core
import custom_pypto_serving
import pytest
import torch
from calls import ARGUMENTS, CALLS, Call
from torch import Tensor

# Two sequences, of 3 and 1 new tokens, in pages of 16.
TOKENS, HEADS, LATENT, ROPE, INDEX_HEADS, SIZE, TOP_K, PAGES = 4, 4, 32, 16, 64, 128, 8, 6
PAGED: dict[str, Any] = {
    "actual_seq_lengths_query": torch.tensor([3, 4], dtype=torch.int32),
    "block_table": torch.tensor([[5, 0, 3], [2, 0, 0]], dtype=torch.int32),
    "layout_query": "TND",
    "sparse_mode": 3,
}
LENGTHS = torch.tensor([37, 5], dtype=torch.int32)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).bfloat16()


def indexer_arguments() -> dict[str, Any]:
    return PAGED | {
        "query": normal(1, TOKENS, INDEX_HEADS, SIZE),
        "key": normal(2, PAGES, 16, 1, SIZE),
        "weights": normal(3, TOKENS, INDEX_HEADS),
        "actual_seq_lengths_key": LENGTHS,
        "layout_key": "PA_BSND",
        "sparse_count": TOP_K,
    }


def quantised_arguments() -> dict[str, Any]:
    arguments = indexer_arguments()
    for name in ("query", "key"):
        values = arguments[name].float()
        scale = (values.abs().amax(-1, keepdim=True) / 127).half()
        arguments[name] = (values / scale.float()).round().clamp(-127, 127).to(torch.int8)
        arguments[f"{name}_dequant_scale"] = scale.squeeze(-1)
        arguments[f"{name}_quant_mode"] = 0
    return arguments | {"weights": arguments["weights"].half()}


def attention_arguments() -> dict[str, Any]:
    latents = normal(4, PAGES, 16, 1, LATENT)
    return PAGED | {
        "query": normal(5, TOKENS, HEADS, LATENT),
        "key": latents,
        "value": latents,
        "sparse_indices": reference("npu_lightning_indexer_pto")(**indexer_arguments()),
        "scale_value": 0.125,
        "sparse_block_size": 1,
        "actual_seq_lengths_kv": LENGTHS,
        "query_rope": normal(6, TOKENS, HEADS, ROPE),
        "key_rope": normal(7, PAGES, 16, 1, ROPE),
        "layout_kv": "PA_BSND",
        "attention_mode": 2,
        "return_softmax_lse": False,
    }


def step_arguments() -> dict[str, Any]:
    return {
        "num_seqs": 3,
        "num_queries": 2,
        "block_size": 4,
        "input_tokens": torch.tensor([1, 2, 3]),
        "sampled_token_ids": torch.tensor([[70], [80]]),
        "input_positions": torch.tensor([2, 3, 0]),
        "seq_lens": torch.tensor([3, 4, 0]),
        "slot_mapping": torch.zeros(3, dtype=torch.int64),
        "block_tables": torch.tensor([[10, 11], [20, 21], [0, 0]]),
    }


def reference(op: str) -> Callable[..., Any]:
    found = custom_pypto.core.reference(op)
    assert found is not None
    return found.function


def reference_attention(arguments: dict[str, Any]) -> tuple[Tensor, Tensor]:
    names = (
        "query query_rope sparse_indices block_table actual_seq_lengths_kv actual_seq_lengths_query"
        " sparse_mode layout_kv"
    )
    out, lse = reference("npu_sparse_flash_attention")(
        **{name: arguments[name] for name in names.split()},
        kv_cache=arguments["key"],
        kr_cache=arguments["key_rope"],
        scale=arguments["scale_value"],
        return_softmax_lse=True,
    )
    return out, lse


def check_indexer(result: Tensor, arguments: dict[str, Any]) -> None:
    assert result.dtype == torch.int32
    wanted = reference("npu_lightning_indexer_pto")(**arguments)
    assert torch.equal(result.sort(-1).values, wanted.sort(-1).values)


def check_quantised(result: Tensor, arguments: dict[str, Any]) -> None:
    real = {name: value for name, value in arguments.items() if "quant" not in name}
    for name in ("query", "key"):
        real[name] = arguments[name].double() * arguments[f"{name}_dequant_scale"][..., None]
    check_indexer(result, real | {"weights": arguments["weights"].double()})


def check_attention(result: Tensor, arguments: dict[str, Any]) -> None:
    torch.testing.assert_close(result, reference_attention(arguments)[0], rtol=0.02, atol=0.002)


def check_step(result: None, arguments: dict[str, Any]) -> None:
    assert arguments["input_tokens"].tolist() == [70, 80, 0]
    assert arguments["input_positions"].tolist() == [3, 4, 0]
    assert arguments["seq_lens"].tolist() == [4, 5, 0]
    assert arguments["slot_mapping"].tolist() == [10 * 4 + 3, 21 * 4, -1]


# Arguments and check, by the op that is called.
OPS: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Any, dict[str, Any]], None]]] = {
    "npu_lightning_indexer": (indexer_arguments, check_indexer),
    "npu_lightning_indexer_pto": (indexer_arguments, check_indexer),
    "npu_quant_lightning_indexer": (quantised_arguments, check_quantised),
    "npu_sparse_flash_attention": (attention_arguments, check_attention),
    "npu_advance_step_flashattn": (step_arguments, check_step),
}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.engine} {call.name}")
def test_a_call_gives_what_the_op_defines(call: Call) -> None:
    make_arguments, check = OPS[call.op]
    arguments = make_arguments()
    function = attrgetter(call.served)(custom_pypto_serving)
    by_position, _, by_keyword = ARGUMENTS[call.served].rpartition("*")
    args = [arguments[name] for name in by_position.split()]
    result = call.take(function(*args, **{name: arguments[name] for name in by_keyword.split()}))
    check(result, arguments)


def test_softmax_max_and_sum_merge_as_vllm_ascend_does() -> None:
    arguments = attention_arguments() | {"return_softmax_lse": True, "sparse_mode": 0}
    _, softmax_max, softmax_sum = custom_pypto_serving.npu_sparse_flash_attention(**arguments)
    softmax_lse = softmax_max + torch.log(softmax_sum)
    # Heads come after tokens, as where vllm-ascend merges the parts of several ranks.
    softmax_lse = softmax_lse.permute(1, 0, 2).reshape(softmax_lse.shape[1], -1, 1)
    lse = reference_attention(arguments)[1]
    torch.testing.assert_close(softmax_lse, lse[..., None].float(), rtol=1e-2, atol=1e-2)


def test_the_softmax_parts_of_a_bsnd_query_have_the_published_shape() -> None:
    arguments = attention_arguments() | {"return_softmax_lse": True, "layout_query": "BSND"}
    for name in ("query", "query_rope", "sparse_indices"):
        arguments[name] = arguments[name].unflatten(0, (2, 2))
    arguments["sparse_indices"] = torch.zeros_like(arguments["sparse_indices"])
    arguments["actual_seq_lengths_query"] = None
    out, *parts = custom_pypto_serving.npu_sparse_flash_attention(**arguments)
    assert out.shape == (2, 2, HEADS, LATENT)
    assert [part.shape for part in parts] == [(2, 1, 2, HEADS)] * 2


def test_values_may_be_another_view_of_the_keys_or_none() -> None:
    arguments = attention_arguments()
    expected = custom_pypto_serving.npu_sparse_flash_attention(**arguments)[0]
    for value in (arguments["key"].squeeze(2).unsqueeze(2), None):
        arguments["value"] = value
        actual = custom_pypto_serving.npu_sparse_flash_attention(**arguments)[0]
        assert torch.equal(actual, expected)


@pytest.mark.parametrize(
    ("layout", "batch", "query_ends", "key_ends"),
    [("BSND", (2,), None, None), ("TND", (), [1, 2], [13, 20])],
)
def test_keys_that_are_not_paged_have_gradients(
    layout: str, batch: tuple[int, ...], query_ends: list[int] | None, key_ends: list[int] | None
) -> None:
    latents = normal(8, *batch, 20, 1, LATENT).float().requires_grad_()
    arguments = attention_arguments() | {
        "query": normal(9, *batch, 2, HEADS, LATENT).float(),
        "query_rope": normal(10, *batch, 2, HEADS, ROPE).float(),
        "key": latents,
        "value": latents,
        "key_rope": normal(11, *batch, 20, 1, ROPE).float(),
        "sparse_indices": torch.tensor([6, 2, 4, 0]).expand(*batch, 2, 1, 4),
        "block_table": None,
        "actual_seq_lengths_query": query_ends and torch.tensor(query_ends),
        "actual_seq_lengths_kv": key_ends and torch.tensor(key_ends),
        "layout_query": layout,
        "layout_kv": layout,
    }
    out = custom_pypto_serving.npu_sparse_flash_attention(**arguments)[0]
    expected = reference_attention(arguments)[0]
    torch.testing.assert_close(out, expected)
    gradients = [torch.autograd.grad(each.square().sum(), latents)[0] for each in (out, expected)]
    assert gradients[1].any()
    torch.testing.assert_close(*gradients)


def test_adapters_are_traced_whole() -> None:
    def layer(indexer: dict[str, Any], attention: dict[str, Any]) -> tuple[Tensor, Tensor]:
        indices, _ = custom_pypto_serving.npu_lightning_indexer(**indexer)
        attention = attention | {"sparse_indices": indices}
        return indices, custom_pypto_serving.custom.npu_sparse_flash_attention(**attention)

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    arguments = indexer_arguments(), attention_arguments()
    torch.testing.assert_close(compiled(*arguments), layer(*arguments), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("argument", "value", "says"),
    [
        ("layout_query", "BSND", "got 'BSND' and 3 dimensions"),
        ("sparse_block_size", 64, "must be 1, got 64"),
        ("attention_mode", 0, "must be 2, got 0"),
        ("sinks", torch.zeros(HEADS), "must be None"),
        ("pre_tokens", 1024, f"must be {2**63 - 1}, got 1024"),
        ("next_tokens", 0, f"must be {2**63 - 1}, got 0"),
        ("value", normal(8, PAGES, 16, 1, LATENT), "must be the same tensor as key"),
        ("query_rope", None, "must be given for attention_mode 2"),
        ("key_rope", None, "must be given for attention_mode 2"),
    ],
)
def test_attention_refuses_unsupported_arguments(argument: str, value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=r"^npu_sparse_flash_attention: argument") as caught:
        custom_pypto_serving.npu_sparse_flash_attention(**attention_arguments() | {argument: value})
    assert f"argument {argument!r} " in str(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize("argument", ["spec_token", "accepted_num"])
def test_a_step_refuses_speculative_decoding(argument: str) -> None:
    says = f"^npu_advance_step_flashattn: argument '{argument}' must be None, got a tensor of shape"
    with pytest.raises(ValueError, match=says):
        custom_pypto_serving.npu_advance_step_flashattn(
            **step_arguments() | {argument: torch.zeros(2, 1)}
        )


def test_an_op_that_is_not_installed_says_what_to_do() -> None:
    with pytest.raises(AttributeError, match=r"no op 'npu_unheard_of'.*is installed as a wheel"):
        custom_pypto_serving.npu_unheard_of  # noqa: B018
