"""The calls that engines make: who, what, with which arguments, and how the result is taken.

Each stands in its engine's sources at the commit or release that `engine` names. A new call needs
an entry here and a row in docs/serving.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

VLLM_ASCEND = "vllm-ascend 182b75ea"
SGLANG = "SGLang 005e8bf8"
LENGTHS = "actual_seq_lengths_query actual_seq_lengths_key block_table"
SELECTION = f"{LENGTHS} layout_query layout_key sparse_count sparse_mode"
INDEXER = f"query key weights {SELECTION}"
QUANTISED = (
    "query key weights query_dequant_scale key_dequant_scale query_quant_mode key_quant_mode"
    f" {SELECTION}"
)
ATTENTION = (
    "query key value sparse_indices scale_value sparse_block_size block_table"
    " actual_seq_lengths_query actual_seq_lengths_kv query_rope key_rope layout_query layout_kv"
    " sparse_mode"
)
STEP = (
    "num_seqs num_queries block_size input_tokens sampled_token_ids input_positions seq_lens"
    " slot_mapping block_tables"
)


class Call(NamedTuple):
    """A call of an engine."""

    engine: str
    name: str
    """The function, as the engine writes it."""
    op: str
    """Our op."""
    arguments: str
    """Names in the order of the call; those before a ``*`` are passed by position."""
    take: Callable[[Any], Any]
    """What the engine does with the result; its docstring shows it."""
    module: str = ""
    """The module of `custom_pypto_serving` that has the function, with a dot."""

    @property
    def served(self) -> str:
        """The function in `custom_pypto_serving`."""
        return self.module + self.name.rpartition(".")[2]


def tensor(result: Any) -> Tensor:
    """x = op(..)."""
    assert isinstance(result, Tensor)
    return result


def of_two(result: Any) -> Tensor:
    """x, _ = op(..)."""
    first, _ = result
    return tensor(first)


def of_three(result: Any) -> Tensor:
    """x, _, _ = op(..)."""
    first, _, _ = result
    return tensor(first)


def first(result: Any) -> Tensor:
    """x = op(..)[0]."""
    assert isinstance(result, tuple)
    return tensor(result[0])


def nothing(result: Any) -> None:
    """op(..)."""
    assert result is None


_INDEXER, _ATTENTION = "npu_lightning_indexer", "npu_sparse_flash_attention"
_QUANTISED, _STEP = "npu_quant_lightning_indexer", "npu_advance_step_flashattn"
_C = "torch.ops._C_ascend"
_LSE = "attention_mode return_softmax_lse"

CALLS = (
    Call(VLLM_ASCEND, f"{_C}.npu_lightning_indexer", _INDEXER, INDEXER, of_two),
    Call(VLLM_ASCEND, "torch_npu.npu_lightning_indexer", _INDEXER, INDEXER, of_two),
    Call(VLLM_ASCEND, f"{_C}.npu_lightning_indexer_quant", _QUANTISED, QUANTISED, tensor),
    Call(VLLM_ASCEND, "torch_npu.npu_quant_lightning_indexer", _QUANTISED, QUANTISED, tensor),
    Call(VLLM_ASCEND, f"{_C}.npu_sparse_flash_attention", _ATTENTION, f"{ATTENTION} {_LSE}", first),
    Call(
        "vllm-ascend v0.18.0",
        f"{_C}.npu_lightning_indexer",
        _INDEXER,
        INDEXER,
        tensor,
        "custom.",
    ),
    Call(
        "vllm-ascend v0.18.0",
        f"{_C}.npu_sparse_flash_attention",
        _ATTENTION,
        ATTENTION,
        tensor,
        "custom.",
    ),
    Call("vllm-ascend v0.9.1", "torch.ops._C.advance_step_flashattn_ascendc", _STEP, STEP, nothing),
    Call(SGLANG, "torch_npu.npu_lightning_indexer", _INDEXER, INDEXER, first),
    Call(
        "SGLang, mid-2026",
        "torch_npu.npu_sparse_flash_attention",
        _ATTENTION,
        f"{ATTENTION} {_LSE}",
        of_three,
    ),
    Call(
        "SGLang 009c6808",
        "torch.ops.custom.npu_sparse_flash_attention",
        _ATTENTION,
        ATTENTION,
        tensor,
        "custom.",
    ),
    Call(
        "sgl-kernel-npu f425bdf1",
        "torch.ops.npu.lightning_indexer",
        "npu_lightning_indexer_pto",
        f"query key weights * {SELECTION}",
        tensor,
    ),
    Call(
        "torch_npu 2.13.0",
        "torch_npu.npu_advance_step_flashattn",
        _STEP,
        "input_tokens sampled_token_ids input_positions seq_lens slot_mapping block_tables num_seqs"
        " num_queries block_size *",
        nothing,
    ),
)
