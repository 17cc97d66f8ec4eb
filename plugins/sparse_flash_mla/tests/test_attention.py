"""npu_sparse_flash_mla against a reference in fp64, at extreme values, sizes and masks."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from custom_pypto_sparse_flash_mla import comparison, reference, samples
from refusals import assert_refused
from torch import Tensor

attention = torch.ops.custom_pypto.npu_sparse_flash_mla
DTYPES = [torch.bfloat16, torch.float16, torch.float32]
WIDE = replace(samples.SMALL, heads=9, columns=64, rows=(700, 90, 300), picks=70, window=40)


def call(sizes: samples.Sizes = WIDE, *kinds: Any, **changes: Any) -> dict[str, Any]:
    return samples.arguments(sizes, *kinds, **{"return_softmax_lse": True, **changes})


def check(arguments: dict[str, Any]) -> tuple[Tensor, Tensor]:
    found = attention(**arguments)
    wide = {
        name: each.double() if isinstance(each, Tensor) and each.is_floating_point() else each
        for name, each in arguments.items()
    }
    out, lse = reference.sparse_flash_mla(**wide)
    comparison.compare(found, (out.to(arguments["q"].dtype), lse), None)
    return found


@pytest.mark.parametrize("layouts", samples.LAYOUTS)
@pytest.mark.parametrize("case", samples.CASES)
def test_every_case_and_layout(case: str, layouts: tuple[str, str]) -> None:
    for dtype in DTYPES:
        check(call(replace(WIDE, dtype=dtype), case, *layouts))


@pytest.mark.parametrize("columns", [1, 3, 15, 16, 33, 100, 512])
def test_any_number_of_columns_and_heads(columns: int) -> None:
    for heads in (1, 17, 64):
        check(call(replace(WIDE, columns=columns, heads=heads)))


@pytest.mark.parametrize("ratio", [1, 2, 3, 16, 128])
def test_any_ratio(ratio: int) -> None:
    for case in ("csa", "hca"):
        check(call(replace(WIDE, ratio=ratio), case))


@pytest.mark.parametrize("mode", [0, 3, 4])
def test_any_window(mode: int) -> None:
    for left, right in product([-1, 0, 1, 127, 2**63 - 1], [-1, 0, 5, 2**63 - 1]):
        sides = {"ori_win_left": left, "ori_win_right": right, "ori_mask_mode": mode}
        for case in ("hca", "sparse"):
            check(call(samples.SMALL, case, "TND", **sides))


def test_more_tokens_than_rows() -> None:
    """The first tokens of a sequence see nothing: zeros, and -inf with sinks too."""
    out, lse = check(call(replace(samples.SMALL, tokens=(5, 5), rows=(3, 0)), "window", "TND"))
    assert not out[:2].any()
    assert bool((lse[0, :2] == -torch.inf).all())
    assert not out[5:].any()
    assert bool(out[2:5].any())


def test_rows_count_as_often_as_they_are_listed() -> None:
    arguments = call(WIDE, "csa")
    arguments["cmp_sparse_indices"] = arguments["cmp_sparse_indices"].clamp(max=2)
    check(arguments)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_sink(dtype: torch.dtype) -> None:
    arguments = call(replace(WIDE, dtype=dtype))
    for sink in (-torch.inf, -1e4, 0.0, 50.0, 1e4):
        arguments["sinks"][::2] = sink
        check(arguments)


@pytest.mark.parametrize("scale", [0.0, 40.0, -1e12, 1e30])
def test_any_scale(scale: float) -> None:
    arguments = call(replace(WIDE, dtype=torch.float32), softmax_scale=scale)
    # Scores above 2^128 are infinite in fp32.
    (check if abs(scale) < 1e20 else lambda each: attention(**each))(arguments)


def test_glm_lists_the_rows_of_its_only_cache() -> None:
    sizes = samples.Sizes(64, 512, (2, 1), (900, 700), 4, 515, 8, 16)
    check(call(sizes, "sparse", "TND", "PA_BBND"))


def test_prefill_gives_the_bits_of_decoding_token_by_token() -> None:
    arguments = call(replace(WIDE, tokens=(6,), rows=(703,), columns=512), "csa")
    whole, _ = attention(**arguments)
    for s in range(6):
        length = 703 - 5 + s
        token = {
            **arguments,
            **{name: arguments[name][:, s : s + 1] for name in ("q", "cmp_sparse_indices")},
            "seqused_ori_kv": torch.tensor([length], dtype=torch.int32),
            "seqused_cmp_kv": torch.tensor([length // 4], dtype=torch.int32),
            "cmp_residual_kv": torch.tensor([length % 4], dtype=torch.int32),
        }
        seen = token["cmp_sparse_indices"] < length // 4
        token["cmp_sparse_indices"] = token["cmp_sparse_indices"].where(seen, -1)
        assert torch.equal(attention(**token)[0][:, 0], whole[:, s]), s


REFUSED = {
    "ori_sparse_indices": ("sparse", 37, "must hold -1 or rows below 37, which sequence 0 has"),
    "ori_block_table": ("window", 99, "must hold a block from 0 to"),
    "seqused_ori_kv": ("window", 999, "must be from 0 to 91 for sequence 0, got 999"),
    "cmp_residual_kv": ("csa", 4, "must be from 0 to 3, less than cmp_ratio, got 4 for sequence 0"),
    "cu_seqlens_q": ("csa", 1, "must be prefix sums that begin with 0 and are at most 10, got 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_refuses(name: str) -> None:
    case, value, text = REFUSED[name]
    arguments = samples.arguments(samples.SMALL, case, "TND", "PA_BBND")
    wrong = arguments[name].clone()
    wrong[0] = value
    assert_refused(
        "npu_sparse_flash_mla", {**arguments, name: wrong}, name, text, is_of_values=True
    )
