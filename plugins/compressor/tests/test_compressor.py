"""npu_compressor: bits of any way to cut a sequence, values that are refused, extreme numbers."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import custom_pypto.core  # noqa: F401  (provides the ops)
import pytest
import torch
from custom_pypto_compressor import reference, samples
from custom_pypto_plugin import SampleInput
from torch import Tensor

OPS = torch.ops.custom_pypto
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def cuts(count: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to cut so many tokens into chunks."""
    for ends in itertools.product((False, True), repeat=count - 1):
        starts = [0, *(i + 1 for i, is_end in enumerate(ends) if is_end), count]
        yield tuple(b - a for a, b in itertools.pairwise(starts))


def in_chunks(call: samples.Arguments, chunks: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Rows of one sequence that comes in chunks, and the state afterwards."""
    state, start, rows = call["state_cache"].clone(), 0, []
    ratio = call["cmp_ratio"]
    for count in chunks:
        chunk = {
            **call,
            "x": call["x"][:, start : start + count],
            "state_cache": state,
            "start_pos": torch.tensor([start]),
        }
        closed = (start + count) // ratio - start // ratio
        rows.append(OPS.npu_compressor(**chunk)[0, :closed])
        start += count
    return torch.cat(rows), state


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("coff", "ratio"), [(1, 3), (2, 2)])
@pytest.mark.parametrize("cache_mode", [1, 2])
def test_bits_are_the_same_for_every_way_to_cut_a_sequence(
    dtype: torch.dtype, coff: int, ratio: int, cache_mode: int
) -> None:
    count = 7
    sizes = samples.Sizes(
        (count,), ratio=ratio, coff=coff, dtype=dtype, hidden=70, cache_mode=cache_mode
    )
    # A ring for all of it in one call; pages smaller than a window.
    sizes = replace(sizes, block_size=coff * ratio + count - 1 if cache_mode == 2 else 2)
    call = samples.compressor_arguments(sizes, "cpu")
    expected, expected_state = in_chunks(call, (count,))
    closed = count // ratio
    needed = slice((closed - coff + 1) * ratio, count)
    assert torch.equal(expected, OPS.npu_compressor(**call)[0, :closed])
    for chunks in cuts(count):
        rows, state = in_chunks(call, chunks)
        assert torch.equal(rows, expected), chunks
        if cache_mode == 1:
            assert torch.equal(state, expected_state), chunks
        else:
            block = call["state_block_table"][0]
            assert torch.equal(state[block, needed], expected_state[block, needed]), chunks


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_the_same_for_long_chunks_and_other_sequences_beside(dtype: torch.dtype) -> None:
    sizes = samples.Sizes((230,), hidden=1030, channels=37, block_size=64, dtype=dtype)
    call = samples.compressor_arguments(sizes, "cpu")
    expected, _ = in_chunks(call, (230,))
    for chunks in [(1,) * 230, (7,) * 32 + (6,), (100, 1, 129)]:
        assert torch.equal(in_chunks(call, chunks)[0], expected)
    three = torch.cat((call["x"][:, :50], call["x"], call["x"][:, 3:10]), 1)[0]
    packed = {
        **call,
        "x": three,
        "cu_seqlens": torch.tensor([0, 50, 280, 287]),
        "state_block_table": torch.zeros(3, 4, dtype=torch.int32),
    }
    assert torch.equal(OPS.npu_compressor(**packed)[50 // 4 :][: 230 // 4], expected)


def test_block_0_of_a_table_of_pages_is_not_written_and_that_of_a_ring_is() -> None:
    call = samples.compressor_arguments(samples.Sizes((11,), block_size=20), "cpu")
    before = call["state_cache"].clone()
    call["state_block_table"].zero_()
    OPS.npu_compressor(**call)
    assert torch.equal(call["state_cache"], before)
    call |= {"cache_mode": 2, "state_block_table": call["state_block_table"][:, 0]}
    OPS.npu_compressor(**call)
    changed = (call["state_cache"] != before).any(-1)
    assert changed.nonzero().tolist() == [[0, position] for position in range(4, 11)]


REFUSED = {
    "cu_seqlens": (
        torch.tensor([1, 14, 31]),
        r"must begin with 0, .* \(the rows of x\), got 1 at 0",
    ),
    "cu_seqlens falls": (
        torch.tensor([0, 14, 13]),
        "must begin with 0, not fall, .* got 13 at 2 behind 14",
    ),
    "cu_seqlens ends": (torch.tensor([0, 14, 32]), ".* above 31 .*, got 32 at 2 behind 14"),
    "seqused": (torch.tensor([3, 18]), r"must be from 0 to 17 .*, got 18 for sequence 1"),
    "start_pos": (torch.tensor([-1, 0]), r"must be at least 0 and below 2\^48, got -1"),
    "state_block_table": (
        torch.tensor([[1, 2, 3, 4], [5, -1, 6, 7]]),
        "must hold blocks from 0 to",
    ),
    "state_block_table ends": (torch.tensor([[1], [2]]), r"holds positions below 6 \(1 blocks of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses_values(case: str) -> None:
    name = case.split()[0]
    call = samples.compressor_arguments(samples.Sizes((14, 17), is_packed=True), "cpu")
    call[name], message = REFUSED[case]
    before = call["state_cache"].clone()
    with pytest.raises(RuntimeError, match=f"npu_compressor: argument '{name}' {message}"):
        OPS.npu_compressor(**call)
    assert torch.equal(call["state_cache"], before)


def test_refuses_a_ring_that_the_longest_sequence_does_not_fit() -> None:
    sizes = samples.Sizes((6, 2), block_size=12, cache_mode=2, is_packed=True)
    reason = r"'cu_seqlens' must fit state_cache: .* coff \* cmp_ratio \+ 6 - 1 = 13 tokens, got 12"
    with pytest.raises(RuntimeError, match=reason):
        OPS.npu_compressor(**samples.compressor_arguments(sizes, "cpu"))


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 3e38, 1e-40])
@pytest.mark.parametrize("coff", [1, 2])
def test_extreme_numbers_give_what_torch_gives(number: float, coff: int) -> None:
    call = samples.compressor_arguments(samples.Sizes((10,), (6,), coff=coff, block_size=16), "cpu")
    place = call["state_block_table"][0, 0]
    call["state_cache"][place, 5, 3] = number  # a kv that is read
    call["state_cache"][place, 4, coff * 19 + 7] = number  # a score that is read
    expected = reference.compressor(**{**call, "state_cache": call["state_cache"].clone()})
    actual = OPS.npu_compressor(**call)
    sample = SampleInput((), {})
    finite = expected.isfinite()
    assert torch.equal(actual.isnan(), expected.isnan())
    assert torch.equal(actual.isinf(), expected.isinf())
    reference.compare(actual.where(finite, 0), expected.where(finite, 0), sample)
