"""What CANN's own LightningIndexer can be given in a graph.

csrc/npu/limits.cpp says the same for eager calls, and where CANN documents it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torchair.ge import Tensor

_DTYPES = (torch.bfloat16, torch.float16)
_HEAD_SIZE = 128
_MAX_HEADS = 64
_KEY_HEADS = 1
_BLOCK_UNIT = 16
_MAX_BLOCK = 1024
# Of those above the first only whole multiples, up to the second.
_MAX_COUNT = 2048
_COUNT_UNIT = 1024
_MAX_LARGE_COUNT = 8192


def check_limits(query: Tensor, key: Tensor, *, layout_key: str, sparse_count: int) -> None:
    """Refuse what LightningIndexer does not take.

    Raises:
        RuntimeError: it names the argument, the limit and the way out.
    """
    dtype = query.meta.dtype
    _limit(dtype in _DTYPES, "query", f"must be bfloat16 or float16, got {dtype}")
    *_, heads, size = map(int, query.symsize)
    _limit(heads <= _MAX_HEADS, "query", f"must have at most {_MAX_HEADS} heads, got {heads}")
    _limit(size == _HEAD_SIZE, "query", f"must have heads of size {_HEAD_SIZE}, got {size}")
    key_heads = int(key.symsize[-2])
    _limit(key_heads == _KEY_HEADS, "key", f"must have {_KEY_HEADS} head, got {key_heads}")
    if layout_key == "PA_BSND":
        block = int(key.symsize[1])
        _limit(
            block % _BLOCK_UNIT == 0 and block <= _MAX_BLOCK,
            "key",
            f"must have a block_size that is a multiple of {_BLOCK_UNIT} and at most {_MAX_BLOCK},"
            f" got {block}",
        )
    _limit(
        sparse_count <= _MAX_COUNT
        or (sparse_count <= _MAX_LARGE_COUNT and sparse_count % _COUNT_UNIT == 0),
        "sparse_count",
        f"must be at most {_MAX_COUNT}, or a multiple of {_COUNT_UNIT} up to {_MAX_LARGE_COUNT},"
        f" got {sparse_count}",
    )


def _limit(holds: bool, argument: str, text: str) -> None:
    if not holds:
        raise RuntimeError(
            f"npu_lightning_indexer_pto: argument '{argument}' {text} (a limit of LightningIndexer,"
            " which CANN ships; LightningIndexerPto of an opp package has none, and takes BSND"
            " queries without query lengths, PA_BSND keys, sparse_count 2048 and sparse_mode 3)"
        )
