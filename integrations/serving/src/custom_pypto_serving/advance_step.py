"""Decode bookkeeping by the signature of vllm-ascend."""

from __future__ import annotations

import torch
from torch import Tensor


def advance_step_flashattn_ascendc(
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
    """Count a decode step on, in place, as the op npu_advance_step_flashattn."""
    torch.ops.custom_pypto.npu_advance_step_flashattn(
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
