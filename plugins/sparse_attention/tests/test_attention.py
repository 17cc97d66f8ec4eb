"""npu_sparse_flash_attention alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from cpp_constant import cpp_constant
from custom_pypto_sparse_attention import attention_comparison, reference, samples
from custom_pypto_testing.timing.interleaved import torch_threads as use_threads
from torch import Tensor

attention = torch.ops.custom_pypto.npu_sparse_flash_attention
SIZES = replace(samples.WIDE, lengths=(150, 90), tokens=2)
DTYPES = [torch.bfloat16, torch.float16, torch.float32]
HEADERS = Path(__file__).parents[1] / "src"
BLOCK_KEYS = cpp_constant(HEADERS, "kKeysOfVectors")
TILED_KEYS = cpp_constant(HEADERS, "kKeysOfTiles")
RANGE_KEYS = cpp_constant(HEADERS, "kRangeKeys")
MOST_RANGES = cpp_constant(HEADERS, "kMostRanges")
SAMPLE_VECTORS = cpp_constant(HEADERS, "kSampleVectors")
# About where another block, and another range, begins.
COUNTS = [BLOCK_KEYS, 2 * BLOCK_KEYS, TILED_KEYS, RANGE_KEYS]
COUNTS = [count + more for count in COUNTS for more in (-1, 0, 1)]
# All blocks of vectors as large as can be, with more keys than vectors of their values are sampled.
LARGEST_BLOCKS = 5 * (RANGE_KEYS // BLOCK_KEYS) * BLOCK_KEYS
assert BLOCK_KEYS > SAMPLE_VECTORS


def call(sizes: samples.Sizes = SIZES, count: int = 32, **changes: Any) -> dict[str, Any]:
    return samples.attention_arguments(sizes, count=count) | changes


def check(arguments: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """The op's outputs, log-sum-exp included, compared with the reference's."""
    arguments = {**arguments, "return_softmax_lse": True}
    out, lse = attention(**arguments)
    expected_out, expected_lse = reference.sparse_flash_attention(**arguments)
    attention_comparison.assert_close(out, expected_out, "out")
    attention_comparison.assert_close(lse, expected_lse, "lse")
    return out, lse


def test_a_row_without_positions_is_zero() -> None:
    arguments = call()
    arguments["sparse_indices"][1, 0] = -1
    out, lse = check(arguments)
    assert int(out[1, 0].count_nonzero()) == 0
    assert bool((lse[1, 0] == -torch.inf).all())
    assert bool(lse[0].isfinite().all())


def test_no_tokens_of_many_heads() -> None:
    arguments = call(replace(SIZES, latent=1, rope=1))
    for name in ("query", "query_rope"):
        arguments[name] = arguments[name][:, :0, :1].expand(-1, -1, 1 << 62, -1)
    arguments["sparse_indices"] = arguments["sparse_indices"][:, :0]
    assert attention(**arguments)[0].shape == (2, 0, 1 << 62, 1)


ANY_SIZES = [
    *((replace(samples.ODD, lengths=(n, n + 100)), n) for n in (1, 2, 3, *COUNTS)),
    *((replace(SIZES, heads=heads), 32) for heads in (1, 15, 16, 17, 64, 130)),
    *(
        (replace(SIZES, latent=latent, rope=rope), 32)
        for latent, rope in ((1, 1), (15, 3), (16, 2), (33, 8), (100, 31))
    ),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("sizes", "count"), ANY_SIZES)
def test_any_number_of_keys_heads_and_columns(
    sizes: samples.Sizes, count: int, dtype: torch.dtype
) -> None:
    check(call(replace(sizes, dtype=dtype), count=count))


@pytest.mark.parametrize("threads", [1, 3])
def test_more_keys_than_as_many_ranges_as_a_row_may_have(threads: int) -> None:
    count = MOST_RANGES * RANGE_KEYS + 1000
    sizes = replace(SIZES, lengths=(count,), block_size=count, tokens=1, heads=2, latent=16, rope=8)
    arguments = call(sizes, count=count)
    # Weights that differ: no key may be missed, wherever it stands.
    arguments["kr_cache"].mul_(10)
    with use_threads(threads):
        check(arguments)


def fill(tensor: Tensor, seed: int = 0) -> None:
    tensor.copy_(torch.randn(tensor.shape, generator=torch.Generator().manual_seed(seed)))


def one_token(lengths: int, count: int) -> dict[str, Any]:
    """A call of one token of DeepSeek's sizes, whose keys lie in one block."""
    sizes = replace(samples.DEEPSEEK, lengths=(lengths,), tokens=1, heads=128, block_size=lengths)
    return call(sizes, count=count)


@pytest.mark.parametrize(
    ("size", "count"), [*((size, 512) for size in (0.3, 0.5, 0.7, 0.9, 1.2)), (8.0, LARGEST_BLOCKS)]
)
def test_outputs_of_any_size_are_close(size: float, count: int) -> None:
    """About where kernels begin to multiply what rounding leaves off the weights, and far above."""
    arguments = one_token(count, count)
    fill(arguments["kv_cache"])
    arguments["kv_cache"].mul_(size)
    # Weights that differ little: outputs are as small as can be for their values.
    check({**arguments, "scale": 0.01 / size})


UNEVEN: dict[str, Callable[[Tensor], object]] = {
    "an empty first key": lambda latents: latents[0].zero_(),
    "every 16th key is small": lambda latents: latents[::16].mul_(0.01),
    "one key in 16 is large": lambda latents: latents[5::16].mul_(4),
    "columns of one part are large": lambda latents: latents[:, 200:232].mul_(8),
    # A sample of the same columns of every key, or of few columns, sees these alone.
    "the first columns are small": lambda latents: latents[:, :64].mul_(1e-3),
}


@pytest.mark.parametrize("count", [4, 8, 16, SAMPLE_VECTORS // 2, 700])
@pytest.mark.parametrize("uneven", UNEVEN)
def test_values_of_uneven_size_are_as_exact_as_others(uneven: str, count: int) -> None:
    arguments = one_token(700, count)
    latents = arguments["kv_cache"][int(arguments["block_table"][0, 0]), :, 0]
    fill(latents)
    UNEVEN[uneven](latents)
    arguments["sparse_indices"][:] = torch.arange(count)
    # Weights that differ, so that none of them is rounded to what others are.
    check({**arguments, "scale": 0.05})


def test_heads_with_small_outputs_beside_heads_with_large_ones() -> None:
    """Vectors of heads, not panels, decide whether the weights' rounding errors are multiplied."""
    arguments = one_token(2048, 2048)
    fill(arguments["query"], seed=1)
    fill(arguments["kv_cache"])
    arguments["kr_cache"].zero_()
    heads = torch.arange(128)
    # Every other 16 heads attend to all keys alike: the last of one half, the first of the other.
    arguments["query"][:, :, (heads // 16 + heads // 64) % 2 == 1] *= 0.02
    arguments["scale"] = 0.12
    whole, _ = check(arguments)
    expected, _ = reference.sparse_flash_attention(**arguments)
    for some in range(0, 128, 16):
        alike = slice(some, some + 16)
        attention_comparison.assert_close(
            whole[:, :, alike], expected[:, :, alike], f"heads from {some} on"
        )
    for half in (slice(0, 64), slice(64, 128)):
        part = {name: arguments[name][:, :, half] for name in ("query", "query_rope")}
        assert torch.equal(attention(**{**arguments, **part})[0], whole[:, :, half])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [40.0, 1e8, -1e12, 1e30])
def test_large_scores_choose_the_highest(scale: float, dtype: torch.dtype) -> None:
    out, lse = check(call(replace(SIZES, dtype=dtype), scale=scale))
    assert bool(out.isfinite().all())
    assert lse.max() > 1000


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "excluded", [range(250), range(400), range(150, 1100), range(1100)], ids=str
)
def test_a_score_of_minus_infinity_excludes_a_key(excluded: range, dtype: torch.dtype) -> None:
    """Whole blocks and whole ranges of such keys too, wherever they stand."""
    sizes = replace(SIZES, lengths=(1100, 1100), block_size=1100, tokens=1, dtype=dtype)
    arguments = call(sizes, count=1100)
    arguments["query_rope"].fill_(-1)
    arguments["sparse_indices"][:] = torch.arange(1100)
    arguments["kr_cache"][:, excluded] = torch.inf
    check(arguments)


def test_nan_in_a_selected_key_shows() -> None:
    arguments = call()
    position = int(arguments["sparse_indices"][0, 0].max())
    block = arguments["block_table"][0, position // SIZES.block_size]
    arguments["kv_cache"][block, position % SIZES.block_size] = torch.nan
    out, _ = attention(**arguments)
    assert bool(out[0, 0].isnan().all())
    assert not bool(out[1].isnan().any())


def test_an_error_in_one_row_ends_the_work_of_every_thread() -> None:
    arguments = call(replace(SIZES, lengths=(1600,), tokens=7), count=1500)
    wrong = arguments["sparse_indices"].clone()
    wrong[0, 3] = 5000
    with use_threads(1):
        expected, _ = attention(**arguments)
    with use_threads(4):
        for _ in range(10):
            with pytest.raises(RuntimeError, match=r"'sparse_indices' must hold .* got 5000"):
                attention(**{**arguments, "sparse_indices": wrong})
            assert torch.equal(attention(**arguments)[0], expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_prefill_gives_the_bits_of_decoding_token_by_token(dtype: torch.dtype) -> None:
    arguments = call(replace(SIZES, lengths=(700, 900), tokens=6, dtype=dtype), count=600)
    prefill, _ = attention(**arguments)
    for s in range(6):
        row = {k: arguments[k][:, s : s + 1] for k in ("query", "query_rope", "sparse_indices")}
        lengths = arguments["actual_seq_lengths_kv"] - (5 - s)
        row["sparse_indices"] = row["sparse_indices"].masked_fill(
            row["sparse_indices"] >= lengths.view(2, 1, 1, 1), -1
        )
        token, _ = attention(**{**arguments, **row, "actual_seq_lengths_kv": lengths})
        assert torch.equal(token[:, 0], prefill[:, s])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_range_of_keys_far_above_the_others_decides(size: float) -> None:
    """Ranges' states are merged whatever their maxima are."""
    arguments = call(replace(SIZES, lengths=(1700,), block_size=1700, tokens=1), count=1700)
    arguments["sparse_indices"][:] = torch.arange(1700)
    arguments["query_rope"].fill_(1)
    for excited in (range(600), range(600, 1200), range(1200, 1700)):
        cache = arguments["kr_cache"].clone()
        cache[:, excited] += size
        check({**arguments, "kr_cache": cache})
