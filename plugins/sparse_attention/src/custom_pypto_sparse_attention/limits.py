"""What CANN's own MlaPrologV3, SparseFlashAttention and LightningIndexer can be given in a graph.

csrc/npu/limits.cpp says the same for eager calls, and where CANN documents it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from . import ge_steps as steps

if TYPE_CHECKING:
    from torchair.ge import Tensor

# Later versions take further ones, which are composed of other operators.
_HIDDEN = (7168, 7680)
_QUERY_RANK = 1536
_NOPE = 128
# The same for both.
_LATENT = 512
_ROPE = 64
_HEADS = (1, 2, 4, 8, 16, 32, 64, 128)
_BLOCK_UNIT = 16
_MAX_BLOCK = 1024
_MAX_INDEX_HEADS = 64
_INDEX_SIZE = 128
_ATTENTION_DTYPES = (torch.bfloat16, torch.float16)
_FUSED_NEEDS = ", which is used with weights of 16 bits and multiples of 16 columns"


def fits_mla_prolog(
    x: Tensor,
    w_dq: Tensor,
    w_uq_qr: Tensor,
    w_uk: Tensor,
    w_dkv_kr: Tensor,
    gamma_cq: Tensor,
    gamma_ckv: Tensor,
    sin: Tensor,
    cos: Tensor,
    kv_cache: Tensor,
) -> bool:
    """Whether the sizes and dtypes are those that MlaPrologV3 is made for: DeepSeek's, in bf16."""
    if any(each.meta.dtype != torch.bfloat16 for each in (x, gamma_cq, gamma_ckv, sin, cos)):
        return False
    if not all(map(steps.is_plain, (w_dq, w_uq_qr, w_dkv_kr))):
        return False
    heads, nope, latent = (steps.size(w_uk, dim) for dim in range(3))
    sizes = (steps.size(w_dq, 1), nope, latent, steps.size(sin, -1))
    return (
        steps.size(x, -1) in _HIDDEN
        and sizes == (_QUERY_RANK, _NOPE, _LATENT, _ROPE)
        and heads in _HEADS
        and _takes_block(steps.size(kv_cache, 1))
    )


def check_attention(
    op: str, holder: str, heads: int, dtype: torch.dtype, kv_cache: Tensor, kr_cache: Tensor
) -> None:
    """Refuse what SparseFlashAttention does not take; `holder` is the argument that has the heads.

    Raises:
        RuntimeError: it names the argument, the limit and the way out.
    """

    def limit(holds: bool, argument: str, text: str) -> None:
        if not holds:
            raise RuntimeError(
                f"{op}: argument '{argument}' {text} (a limit of SparseFlashAttention, which CANN"
                " ships; npu_sparse_attention_pto has none where an opp package has"
                f" SparseAttentionPto{_FUSED_NEEDS})"
            )

    limit(heads in _HEADS, holder, f"must have 1, 2, 4, 8, 16, 32, 64 or 128 heads, got {heads}")
    limit(dtype in _ATTENTION_DTYPES, "kv_cache", f"must be bfloat16 or float16, got {dtype}")
    for argument, cache, expected in (
        ("kv_cache", kv_cache, _LATENT),
        ("kr_cache", kr_cache, _ROPE),
    ):
        size = steps.size(cache, -1)
        limit(size == expected, argument, f"must have rows of size {expected}, got {size}")
    block = steps.size(kv_cache, 1)
    limit(
        _takes_block(block),
        "kv_cache",
        f"must have a block_size that is a multiple of {_BLOCK_UNIT} and at most {_MAX_BLOCK},"
        f" got {block}",
    )


def check_indexer(op: str, holder: str, heads: int, index_k_cache: Tensor) -> None:
    """Refuse what LightningIndexer does not take of the fused op; `check_attention` has passed.

    `holder` is the argument that has the indexer's heads.

    Raises:
        RuntimeError: it names the argument, the limit and the way out.
    """

    def limit(holds: bool, argument: str, text: str) -> None:
        if not holds:
            raise RuntimeError(
                f"{op}: argument '{argument}' {text} (a limit of LightningIndexer, which CANN"
                " ships; npu_sparse_attention_pto does not have it where an opp package has"
                f" LightningIndexerPto, or SparseAttentionPto{_FUSED_NEEDS})"
            )

    limit(
        heads <= _MAX_INDEX_HEADS,
        holder,
        f"must have at most {_MAX_INDEX_HEADS} columns, one for each of the indexer's heads,"
        f" got {heads}",
    )
    size = steps.size(index_k_cache, -1)
    limit(
        size == _INDEX_SIZE,
        "index_k_cache",
        f"must have rows of size {_INDEX_SIZE}, got {size}",
    )


def _takes_block(size: int) -> bool:
    return 1 <= size <= _MAX_BLOCK and size % _BLOCK_UNIT == 0
