"""npu_advance_step_flashattn by vllm-mindspore's name, with the arguments in that order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ops import npu_advance_step_flashattn

if TYPE_CHECKING:
    from torch import Tensor


def adv_step_flash(
    num_seqs: int,
    num_queries: int,
    block_size: int,
    input_tokens: Tensor,
    sampled_token_ids: Tensor,
    input_positions: Tensor,
    seq_lens: Tensor,
    slot_mapping: Tensor,
    block_tables: Tensor,
) -> None:
    """Advance the tensors of a batch by a step, in place; `npu_advance_step_flashattn` says how."""
    npu_advance_step_flashattn(
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
