"""Ops under the names and with the argument orders that vllm-mindspore publishes."""

from __future__ import annotations

import mindspore

from . import ops


def adv_step_flash(
    num_seqs: int,
    num_queries: int,
    block_size: int,
    input_tokens: mindspore.Tensor,
    sampled_token_ids: mindspore.Tensor,
    input_positions: mindspore.Tensor,
    seq_lens: mindspore.Tensor,
    slot_mapping: mindspore.Tensor,
    block_tables: mindspore.Tensor,
) -> None:
    """Prepare the next step of decoding: `ops.npu_advance_step_flashattn` in another order."""
    ops.npu_advance_step_flashattn(
        input_tokens,
        sampled_token_ids,
        input_positions,
        seq_lens,
        slot_mapping,
        block_tables,
        num_seqs,
        num_queries,
        block_size,
    )
