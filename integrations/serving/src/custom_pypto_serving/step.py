"""The step between two decodings by torch_npu's signature, on npu_advance_step_flashattn."""

from __future__ import annotations

import torch
from torch import Tensor

from .refusal import require

OP = "npu_advance_step_flashattn"


def npu_advance_step_flashattn(
    input_tokens: Tensor,
    sampled_token_ids: Tensor,
    input_positions: Tensor,
    seq_lens: Tensor,
    slot_mapping: Tensor,
    block_tables: Tensor,
    num_seqs: int,
    num_queries: int,
    block_size: int,
    *,
    spec_token: Tensor | None = None,
    accepted_num: Tensor | None = None,
) -> None:
    """Advance a batch by a step, in place, as torch_npu's op of this name.

    Raises:
        ValueError: the op does not support an argument.
    """
    hint = "speculative decoding is not supported: leave it out"
    require(OP, "spec_token", spec_token, None, hint)
    require(OP, "accepted_num", accepted_num, None, hint)
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
