"""Ops under the names and with the argument orders that vllm-mindspore publishes."""

from __future__ import annotations

import inspect
from typing import Any

from .op import Op


class _AdvStepFlash(Op):
    """Advance the tensors of a batch by a step, in place.

    ``adv_step_flash(num_seqs, num_queries, block_size, input_tokens, sampled_token_ids,
    input_positions, seq_lens, slot_mapping, block_tables)`` is `ops.npu_advance_step_flashattn`
    with the numbers first.
    """

    __signature__ = inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for name in (
                *("num_seqs", "num_queries", "block_size", "input_tokens", "sampled_token_ids"),
                *("input_positions", "seq_lens", "slot_mapping", "block_tables"),
            )
        ]
    )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Prepare the next step of decoding, in place."""
        try:
            given = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"adv_step_flash: {error}") from None
        return super().__call__(**given.arguments)


adv_step_flash = _AdvStepFlash("npu_advance_step_flashattn")
