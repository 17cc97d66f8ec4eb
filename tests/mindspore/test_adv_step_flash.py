"""The op that vllm-mindspore calls, as it calls it."""

from __future__ import annotations

import custom_pypto_advance_step
import numpy as np
import pytest
import torch
from custom_pypto_mindspore import npu_ops
from mindspore import Tensor

# Block tables of 4 blocks with 32 slots, for 256 sequences: the sizes of its own test.
BLOCK_SIZE, BLOCKS, SEQUENCES = 32, 4, 256


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("queries", [SEQUENCES, SEQUENCES - 56])
def test_the_next_step_is_prepared_in_place(dtype: type, queries: int, by_name: bool) -> None:
    random = np.random.default_rng(0)

    def draw(high: int, *shape: int) -> np.ndarray:
        return random.integers(high, size=shape, dtype=dtype)

    sizes = {"num_seqs": SEQUENCES, "num_queries": queries, "block_size": BLOCK_SIZE}
    values = {
        "input_tokens": draw(100, SEQUENCES),
        "sampled_token_ids": draw(65536, queries),
        "input_positions": draw(100, SEQUENCES),
        "seq_lens": draw(BLOCK_SIZE * BLOCKS - 1, SEQUENCES),
        "slot_mapping": draw(100, SEQUENCES),
        "block_tables": draw(1024, SEQUENCES, BLOCKS),
    }
    mine = {name: Tensor(each) for name, each in values.items()}
    call = {**sizes, **mine}
    advance = npu_ops.adv_step_flash
    assert (advance(**call) if by_name else advance(*call.values())) is None
    # It writes to these arrays.
    custom_pypto_advance_step.adv_step_flash(
        **sizes, **{n: torch.from_numpy(v) for n, v in values.items()}
    )
    for name, tensor in mine.items():
        assert tensor.asnumpy().tolist() == values[name].tolist(), name
