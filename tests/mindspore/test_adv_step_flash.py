"""The op that vllm-mindspore calls, as it calls it."""

from __future__ import annotations

import numpy as np
import pytest
from custom_pypto_mindspore import npu_ops
from mindspore import Tensor

# Block tables of 4 blocks with 32 slots, for 256 sequences: the sizes of its own test.
BLOCK_SIZE = 32
BLOCKS = 4
SEQUENCES = 256


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("queries", [SEQUENCES, SEQUENCES - 56])
def test_the_next_step_is_prepared_in_place(dtype: type, queries: int, by_name: bool) -> None:
    random = np.random.default_rng(0)

    def draw(high: int, *shape: int) -> np.ndarray:
        return random.integers(high, size=shape, dtype=dtype)

    sampled = draw(65536, queries)
    tokens, positions, slots = (draw(100, SEQUENCES) for _ in range(3))
    lengths = draw(BLOCK_SIZE * BLOCKS - 1, SEQUENCES)
    tables = draw(1024, SEQUENCES, BLOCKS)
    mine = {
        "input_tokens": Tensor(tokens),
        "sampled_token_ids": Tensor(sampled),
        "input_positions": Tensor(positions),
        "seq_lens": Tensor(lengths),
        "slot_mapping": Tensor(slots),
        "block_tables": Tensor(tables),
    }
    sizes = {"num_seqs": SEQUENCES, "num_queries": queries, "block_size": BLOCK_SIZE}
    call = {**sizes, **mine}
    advance = npu_ops.adv_step_flash
    assert (advance(**call) if by_name else advance(*call.values())) is None

    rows = np.arange(queries)
    before = lengths[:queries].copy()
    tokens[:queries] = sampled
    positions[:queries] = before
    lengths[:queries] = before + 1
    slots[:queries] = tables[rows, before // BLOCK_SIZE] * BLOCK_SIZE + before % BLOCK_SIZE
    # Padding.
    tokens[queries:], positions[queries:], slots[queries:] = 0, 0, -1
    wanted = (tokens, sampled, positions, lengths, slots, tables)
    for (name, tensor), values in zip(mine.items(), wanted, strict=True):
        assert tensor.asnumpy().tolist() == values.tolist(), name
