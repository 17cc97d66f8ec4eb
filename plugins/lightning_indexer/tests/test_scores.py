"""Results against the reference, at sizes and strides chosen to meet every path of the kernels."""

from dataclasses import replace
from pathlib import Path

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from cpp_constant import cpp_constant
from custom_pypto_lightning_indexer import OP, reference, selection_comparison
from custom_pypto_lightning_indexer.samples import Sizes, paged
from custom_pypto_plugin import SampleInput
from custom_pypto_testing.timing.interleaved import torch_threads as use_threads

indexer = torch.ops.custom_pypto.npu_lightning_indexer_pto
CSRC = Path(__file__).parents[1] / "csrc"
DTYPES = [torch.bfloat16, torch.float16, torch.float32]


def assert_right(sample: SampleInput) -> None:
    expected = reference.select(OP, *sample.args, **sample.kwargs)
    selection_comparison.compare(OP, indexer(*sample.args, **sample.kwargs), expected, sample)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_random_paged_batches(random_sizes: Sizes, dtype: torch.dtype) -> None:
    sizes = replace(random_sizes, dtype=dtype)
    for sparse_mode, sparse_count in ((3, 1), (0, 50), (3, 2048)):
        options = {"sparse_mode": sparse_mode, "sparse_count": sparse_count}
        assert_right(paged("cpu", "", sizes, **options))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_do_not_depend_on_how_a_ragged_batch_is_split(dtype: torch.dtype) -> None:
    lengths = [3001, 40, 1, 0, 2200, 97, 96]
    sizes = Sizes(lengths, 17, 16, depth=64, block_size=128, dtype=dtype)
    whole = paged("cpu", "", sizes, sparse_count=2048)
    query, key, weights = whole.args
    with use_threads(3):
        together = indexer(*whole.args, **whole.kwargs)
    for b, length in enumerate(lengths):
        one = slice(b, b + 1)
        options = {k: v[one] if torch.is_tensor(v) else v for k, v in whole.kwargs.items()}
        with use_threads(1):
            alone = indexer(query[one], key, weights[one], **options)
        assert alone.equal(together[one]), f"sequence {b} of length {length}"


RANKS_ROOM = cpp_constant(CSRC, "kRanksRoom")
ROWS_PER_BLOCK = cpp_constant(CSRC, "kRowsPerBlock")


@pytest.mark.parametrize("threads", [1, 2])
def test_more_rows_than_have_their_ranks_in_memory_at_a_time(threads: int) -> None:
    """Several waves of row blocks, the last one smaller, of sequences that end within a wave."""
    tokens, sequences = 6 * ROWS_PER_BLOCK + 3, 4
    keys = 5 * RANKS_ROOM // (2 * tokens * sequences)
    generator = torch.Generator().manual_seed(0)
    key = torch.randn(sequences, keys, generator=generator)
    # Two heads of opposite signs: a row's scores are the keys, or the keys negated.
    signs = torch.randint(2, (sequences, tokens, 1), generator=generator) * 2.0 - 1.0
    query = torch.tensor([1.0, -1.0]).view(1, 1, 2, 1).expand(sequences, tokens, 2, 1)
    weights = torch.cat([signs, -signs], -1)
    with use_threads(threads):
        actual = indexer(
            query, key.view(sequences, keys, 1, 1), weights, layout_key="BSND", sparse_count=3
        )
    for b in range(sequences):
        for s in range(tokens):
            seen = key[b, : keys - (tokens - 1 - s)] * signs[b, s]
            assert actual[b, s, 0].equal(seen.topk(3).indices.int()), (b, s)


def test_a_key_scores_the_same_wherever_it_lies() -> None:
    sample = paged("cpu", "", Sizes([500], 1, 64, depth=64, block_size=128), sparse_count=500)
    query, key, weights = sample.args
    same = key[:1, :1].expand_as(key).clone()
    assert indexer(query, same, weights, **sample.kwargs).flatten().tolist() == list(range(500))


def test_infinite_keys_do_not_disturb_lanes_without_a_head() -> None:
    key = torch.tensor([1.0, torch.inf, 2.0]).reshape(1, 3, 1, 1)
    result = indexer(torch.ones(1, 1, 3, 1), key, torch.ones(1, 1, 3), layout_key="BSND")
    assert result.flatten()[:4].tolist() == [1, 2, 0, -1]
