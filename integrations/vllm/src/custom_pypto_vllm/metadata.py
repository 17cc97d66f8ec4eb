"""What the ops must know of a step; built once for all layers of a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from .names import AttentionMetadata, AttentionMetadataBuilder


@dataclass
class StepMetadata(AttentionMetadata):  # type: ignore[misc]
    """The requests of a step. The tensors are views of vLLM's own, which it allocates once."""

    num_actual_tokens: int
    query_bounds: Tensor  # where each request's query tokens begin, and the end, [requests + 1]
    seq_lens: Tensor  # tokens of each request, with the tokens of this step, [requests]
    block_table: Tensor  # [requests, blocks]
    slot_mapping: Tensor  # where the keys of this step belong, [tokens]
    # vLLM's layer reads these. Each token is a "decode": it attends to the latent cache.
    num_decodes: int
    num_decode_tokens: int
    num_prefills: int = 0
    prefill: None = None
    decode: None = None

    @property
    def query_ends(self) -> Tensor:
        """Return the prefix sums of the requests' query tokens, [requests]."""
        return self.query_bounds[1:]


class StepMetadataBuilder(AttentionMetadataBuilder):  # type: ignore[misc]
    """Makes the metadata of a step, without reading values of the tensors that layers use."""

    # Abstract in vLLM.
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> StepMetadata:
        """Return the metadata of one step."""
        common = common_attn_metadata
        requests = common.num_reqs
        tokens = int(common.query_start_loc_cpu[requests])
        return StepMetadata(
            num_actual_tokens=tokens,
            query_bounds=common.query_start_loc[: requests + 1],
            seq_lens=common.seq_lens[:requests],
            block_table=common.block_table_tensor[:requests],
            slot_mapping=common.slot_mapping[:tokens],
            num_decodes=requests,
            num_decode_tokens=tokens,
        )
