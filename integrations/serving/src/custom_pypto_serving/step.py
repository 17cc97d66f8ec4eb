"""The step between two decodings by the engines' signatures, on npu_advance_step_flashattn."""

from __future__ import annotations

import torch
from torch import Tensor

from .refusal import require

OP = "npu_advance_step_flashattn"
OF_VLLM_ASCEND = "advance_step_flashattn_ascendc"


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
    """Advance a batch by a step, in place, as the op of vllm-ascend 0.9.1 of this name.

    It leaves the rows of padding, from `num_queries` on, as they are; `npu_advance_step_flashattn`
    writes them.

    Raises:
        ValueError: a tensor does not have `num_seqs` rows.
    """
    rows = {
        "input_tokens": input_tokens,
        "input_positions": input_positions,
        "seq_lens": seq_lens,
        "slot_mapping": slot_mapping,
        "block_tables": block_tables,
    }
    for name, tensor in rows.items():
        if tensor.shape[:1] != (num_seqs,):
            raise ValueError(
                f"{OF_VLLM_ASCEND}: argument {name!r} must have num_seqs ({num_seqs}) rows, got"
                f" shape {list(tensor.shape)}"
            )
    torch.ops.custom_pypto.npu_advance_step_flashattn(
        sampled_token_ids=sampled_token_ids,
        **{name: tensor[:num_queries] for name, tensor in rows.items()},
        num_seqs=num_queries,
        num_queries=num_queries,
        block_size=block_size,
    )
