"""npu_sparse_attention_pto as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import comparison, reference, samples, to_nz
from torch import Tensor

Op = Callable[..., Tensor]
Arguments = tuple[Tensor, ...]
CACHES = (10, 11, 19)
FRACTAL = (1, 2, 4, 14, 15, 16)


def cloned(arguments: Arguments) -> Arguments:
    return tuple(a.clone() for a in arguments)


def changed(arguments: Arguments, changes: dict[int, Tensor]) -> Arguments:
    return tuple(changes.get(i, a) for i, a in enumerate(arguments))


def check(fused: Op, arguments: Arguments) -> Tensor:
    """The op's output, compared with the reference's, as are the caches."""
    sample = SampleInput(cloned(arguments))
    expected_arguments = cloned(arguments)
    expected = reference.sparse_attention(*expected_arguments)
    actual = fused(*arguments)
    comparison.compare_fused(actual, expected, sample)
    for cache in CACHES:
        comparison.assert_close(arguments[cache], expected_arguments[cache], f"argument {cache}")
    return actual


@pytest.mark.parametrize("name", samples.CASES)
def test_equals_its_pieces_bit_for_bit(fused: Op, name: str) -> None:
    arguments = samples.fused_arguments(samples.CASES[name])
    whole, pieces = cloned(arguments), cloned(arguments)
    out = fused(*whole)

    ops = torch.ops.custom_pypto
    query, query_rope, q_norm = ops.npu_mla_prolog(*pieces[:12])
    query_index, weights = ops.npu_indexer_prolog(
        pieces[0], q_norm, *pieces[14:19], pieces[7], pieces[8], pieces[9], pieces[19]
    )
    selected = ops.npu_lightning_indexer_pto(
        query_index,
        pieces[19],
        weights,
        actual_seq_lengths_key=pieces[13],
        block_table=pieces[12],
        sparse_count=2048,
    )
    attended, lse = ops.npu_sparse_flash_attention(
        query,
        query_rope,
        pieces[10],
        pieces[11],
        selected,
        pieces[12],
        pieces[13],
        scale=(pieces[10].shape[-1] + pieces[11].shape[-1]) ** -0.5,
    )
    assert lse.shape == (0,)
    assert torch.equal(out, attended)
    for cache in CACHES:
        assert torch.equal(whole[cache], pieces[cache])


def test_deepseek_proportions(fused: Op) -> None:
    sizes = samples.Sizes(
        lengths=(300, 2100),
        tokens=2,
        hidden=448,
        query_rank=192,
        heads=128,
        nope=128,
        latent=512,
        rope=64,
        index_heads=64,
        index_size=128,
        block_size=128,
    )
    check(fused, samples.fused_arguments(sizes))


def test_rows_before_the_first_token_are_zero(fused: Op) -> None:
    sizes = replace(samples.SMALL, lengths=(0, 1, 2, 20), tokens=3)
    out = check(fused, samples.fused_arguments(sizes))
    assert [int(out[b, s].count_nonzero()) == 0 for b in range(4) for s in range(3)] == [
        *(True, True, True),
        *(True, True, False),
        *(True, False, False),
        *(False, False, False),
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_ragged_lengths(fused: Op, dtype: torch.dtype, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, 200, (5,), generator=generator).tolist()
    sizes = replace(samples.ODD, lengths=tuple(lengths), tokens=1 + seed, dtype=dtype)
    check(fused, samples.fused_arguments(sizes, seed=seed))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_fractal_weights_give_the_bits_of_plain_ones(fused: Op, dtype: torch.dtype) -> None:
    sizes = replace(samples.FRACTAL_SIZES, dtype=dtype)
    plain = samples.fused_arguments(sizes)
    fractal = changed(cloned(plain), {i: to_nz(plain[i]) for i in FRACTAL})
    assert torch.equal(fused(*plain), fused(*fractal))


def test_transposed_weights_give_the_bits_of_plain_ones(fused: Op) -> None:
    plain = samples.fused_arguments(samples.ODD)
    transposed = changed(cloned(plain), {i: plain[i].t().contiguous().t() for i in FRACTAL})
    assert torch.equal(fused(*plain), fused(*transposed))


def test_caches_may_be_views_of_one_buffer(fused: Op) -> None:
    sizes = samples.WIDE
    dense = samples.fused_arguments(sizes)
    blocks, block_size = dense[10].shape[:2]
    widths = [dense[cache].shape[-1] for cache in CACHES]
    buffer = torch.full((blocks, block_size + 3, 1, sum(widths) + 5), 7.0, dtype=sizes.dtype)
    views = buffer[:, 1 : block_size + 1, :, 2 : 2 + sum(widths)].split(widths, -1)
    for view, cache in zip(views, CACHES, strict=True):
        view.copy_(dense[cache])
    strided = changed(dense, dict(zip(CACHES, views, strict=True)))
    dense = cloned(dense)
    assert torch.equal(fused(*strided), fused(*dense))
    for view, cache in zip(views, CACHES, strict=True):
        assert torch.equal(view, dense[cache])
        view.fill_(7.0)
    assert bool((buffer == 7.0).all())


def test_the_original_of_a_lazily_cloned_cache_is_left_alone(fused: Op) -> None:
    expected, arguments = (samples.fused_arguments(samples.SMALL) for _ in range(2))
    lazy = changed(arguments, {i: torch._lazy_clone(arguments[i]) for i in CACHES})
    assert torch.equal(fused(*lazy), fused(*expected))
    untouched = samples.fused_arguments(samples.SMALL)
    for cache in CACHES:
        assert torch.equal(lazy[cache], expected[cache])
        assert torch.equal(arguments[cache], untouched[cache])


def test_of_equal_slots_the_last_token_wins(fused: Op) -> None:
    arguments = samples.fused_arguments(samples.WIDE)
    slots = torch.full_like(arguments[9], int(arguments[9][-1, -1]))
    shared = changed(arguments, {9: slots})
    fused(*shared)
    alone = samples.fused_arguments(samples.WIDE)
    torch.ops.custom_pypto.npu_mla_prolog(
        *(alone[i][-1:, -1:] if i in (0, 7, 8, 9) else alone[i] for i in range(12))
    )
    for cache in (10, 11):
        assert torch.equal(shared[cache], alone[cache])


def test_int64_gives_the_bits_of_int32(fused: Op) -> None:
    narrow = samples.fused_arguments(samples.SMALL)
    wide = changed(cloned(narrow), {i: narrow[i].long() for i in (9, 12, 13)})
    assert torch.equal(fused(*narrow), fused(*wide))


def test_takes_fp32_angles_and_norm_parameters(fused: Op) -> None:
    arguments = samples.fused_arguments(samples.SMALL)
    check(fused, changed(arguments, {i: arguments[i].float() for i in (5, 6, 7, 8, 17, 18)}))


def test_does_not_read_what_no_sequence_uses(fused: Op) -> None:
    arguments = samples.fused_arguments(samples.WIDE)
    clean = fused(*cloned(arguments))
    block_size = samples.WIDE.block_size
    unused = torch.ones(arguments[10].shape[0] * block_size, dtype=torch.bool)
    for row, length in zip(arguments[12].tolist(), samples.WIDE.lengths, strict=True):
        positions = range(length)
        unused[[row[p // block_size] * block_size + p % block_size for p in positions]] = False
    for cache in CACHES:
        arguments[cache].view(-1, arguments[cache].shape[-1])[unused] = torch.nan
    assert torch.equal(fused(*arguments), clean)


def test_bumps_the_version_of_each_cache(fused: Op) -> None:
    arguments = samples.fused_arguments(samples.SMALL)
    before = [a._version for a in arguments]
    fused(*arguments)
    bumped = [i for i, a in enumerate(arguments) if a._version > before[i]]
    assert bumped == list(CACHES)


@pytest.mark.parametrize("shape", [(0, 1), (2, 0)])
def test_nothing_to_decode(fused: Op, shape: tuple[int, int]) -> None:
    sizes = replace(samples.SMALL, lengths=samples.SMALL.lengths[: shape[0]] or (5,), tokens=1)
    arguments = samples.fused_arguments(sizes)
    empty = changed(arguments, {i: arguments[i][: shape[0], : shape[1]] for i in (0, 7, 8, 9)})
    empty = changed(empty, {i: arguments[i][: shape[0]] for i in (12, 13)})
    assert fused(*empty).shape == (*shape, sizes.heads, sizes.latent)


def test_published_size_of_one_sequence(fused: Op) -> None:
    """Every size of DeepSeek-V3.2 but the hidden one, with the published kind of data."""
    sizes = samples.Sizes(
        lengths=(4097,),
        hidden=512,
        query_rank=1536,
        heads=128,
        nope=128,
        latent=512,
        rope=64,
        index_heads=64,
        index_size=128,
        block_size=128,
    )
    generator = torch.Generator().manual_seed(0)

    def uniform(like: Tensor, size: float) -> Tensor:
        values = torch.rand(like.shape, generator=generator) * 2 - 1
        return (values * size).to(like.dtype)

    arguments = list(samples.fused_arguments(sizes))
    for i in (0, 14, 15, 16, 17, 18, 19):
        arguments[i] = uniform(arguments[i], 1.0)
    for i in (1, 2, 3, 4, 5, 6, 7, 8, 10, 11):
        arguments[i] = uniform(arguments[i], 0.1)
    check(fused, tuple(arguments))
