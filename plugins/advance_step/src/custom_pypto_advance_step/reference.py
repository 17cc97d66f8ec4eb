"""The definition of npu_advance_step_flashattn, in integer arithmetic of PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor


def advance_step(
    input_tokens: Tensor,
    sampled_token_ids: Tensor,
    input_positions: Tensor,
    seq_lens: Tensor,
    slot_mapping: Tensor,
    block_tables: Tensor,
    num_seqs: int,
    num_queries: int,
    block_size: int,
) -> None:
    """Write the next step's tokens, positions, lengths and slots.

    input_tokens, input_positions, seq_lens and slot_mapping [num_seqs] are written;
    sampled_token_ids is [num_queries] or [num_queries, 1], block_tables [num_seqs, blocks]. Rows
    from num_queries on are padding: token 0, position 0, slot -1, and the length that they have.
    """
    queries = torch.arange(num_queries, device=seq_lens.device)
    positions = seq_lens[:num_queries].long()
    blocks = block_tables.long()[queries, positions // block_size]
    slots = blocks * block_size + positions % block_size
    input_tokens[:num_queries] = sampled_token_ids.reshape(num_queries).to(input_tokens.dtype)
    input_positions[:num_queries] = positions.to(input_positions.dtype)
    slot_mapping[:num_queries] = slots.to(slot_mapping.dtype)
    seq_lens[:num_queries] += 1
    input_tokens[num_queries:] = 0
    input_positions[num_queries:] = 0
    slot_mapping[num_queries:] = -1
