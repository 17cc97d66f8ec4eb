"""The calls that engines make: the table of docs/serving.md, and the arguments of each call.

A call stands in its engine's sources at the commit or release that the table names.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[3] / "docs" / "serving.md"

_SELECTION = (
    "actual_seq_lengths_query actual_seq_lengths_key block_table layout_query layout_key"
    " sparse_count sparse_mode"
)
_QUANTISED = (
    "query key weights query_dequant_scale key_dequant_scale query_quant_mode key_quant_mode"
    f" {_SELECTION}"
)
_ATTENTION = (
    "query key value sparse_indices scale_value sparse_block_size block_table"
    " actual_seq_lengths_query actual_seq_lengths_kv query_rope key_rope layout_query layout_kv"
    " sparse_mode"
)
_SHARED_KV = (
    "q * ori_kv cmp_kv ori_block_table cmp_block_table cu_seqlens_q cu_seqlens_ori_kv seqused_kv"
    " sinks metadata softmax_scale cmp_ratio ori_mask_mode ori_win_left ori_win_right layout_q"
    " layout_kv"
)
_HYPER = "x hc_fn hc_scale hc_base hc_mult hc_sinkhorn_iters norm_eps hc_eps *"
_COMPRESSOR = (
    "x wkv wgate state_cache ape norm_weight rope_sin rope_cos * state_block_table cu_seqlens"
    " seqused start_pos rope_head_dim cmp_ratio coff norm_eps rotary_mode cache_mode"
)
_STEP = "input_tokens sampled_token_ids input_positions seq_lens slot_mapping block_tables"
_SIZES = "num_seqs num_queries block_size"

ARGUMENTS = {
    "npu_lightning_indexer": f"query key weights {_SELECTION}",
    "npu_lightning_indexer_quant": _QUANTISED,
    "npu_quant_lightning_indexer": _QUANTISED,
    "npu_sparse_flash_attention": f"{_ATTENTION} attention_mode return_softmax_lse",
    "npu_advance_step_flashattn": f"{_STEP} {_SIZES} *",
    "custom.npu_lightning_indexer": f"query key weights {_SELECTION}",
    "custom.npu_sparse_flash_attention": _ATTENTION,
    "advance_step_flashattn_ascendc": f"{_SIZES} {_STEP}",
    "npu_sparse_attn_sharedkv": _SHARED_KV,
    "custom.npu_sparse_attn_sharedkv": _SHARED_KV,
    "sparse_attn_sharedkv": _SHARED_KV,
    "npu_hc_pre": _HYPER,
    "npu_hc_post": "x residual post comb *",
    "npu_vllm_quant_lightning_indexer": f"* {_QUANTISED} metadata cmp_ratio return_value",
    "compressor": _COMPRESSOR,
    "lightning_indexer": f"query key weights * {_SELECTION}",
}
"""By `Call.served`, in the order of the call; those before a ``*`` are passed by position."""


class Call(NamedTuple):
    """A row of the table."""

    engine: str
    name: str
    """The function, as the engine writes it."""
    served: str
    """The function in `custom_pypto_serving`."""
    statement: str
    """How the engine takes the result, as ``x``."""
    op: str
    """Our op."""

    def take(self, result: Any) -> Any:
        """Execute the statement on a result, and return ``x``."""
        names = {"result": result, "x": None}
        exec(self.statement.replace("op(..)", "result"), names)
        assert (names["x"] is None) == (result is None)
        return names["x"]


def _read_calls() -> list[Call]:
    (section,) = re.findall(r"^## The calls\n(.*?)^## ", PAGE.read_text("utf-8"), re.M | re.S)
    rows = [re.split(r" *\| *", line.strip("| ")) for line in section.splitlines()]
    _heads, _rule, *rows = (row for row in rows if len(row) == len(Call._fields))
    return [Call(*(cell.strip("`").removeprefix("….") for cell in row)) for row in rows]


CALLS = _read_calls()
