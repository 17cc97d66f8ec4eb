"""Fractal NZ order of weights, and whether the bytes of 2-D ones are declared to lie in it.

The plugin's library keeps the declaration, for kernels and Python alike; csrc/weight_order.cpp.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import warnings
from collections.abc import Iterator

from torch import Tensor

MLA_MATRICES = ("w_dq", "w_uq_qr", "w_dkv_kr")
INDEXER_MATRICES = ("w_idx_qb", "w_idx_k", "w_idx_proj")
NZ_WEIGHTS = MLA_MATRICES + INDEXER_MATRICES
"""The weights that may be in fractal NZ order: those with the template `weight` in ops.toml."""
MLA_WEIGHTS = (*MLA_MATRICES, "w_uk", "gamma_cq", "gamma_ckv")
INDEXER_WEIGHTS = (*INDEXER_MATRICES, "in_gamma_k", "in_beta_k")

LANES = 16
"""Columns of a tile in fractal NZ order, for dtypes of 16 bits."""

VARIABLE = "CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS"
DECLARATION = f"{VARIABLE}=nz or declare_nz_weights()"
"""For messages: what declares that 2-D weights hold fractal NZ bytes."""


def to_nz(weight: Tensor) -> Tensor:
    """Bring a weight into fractal NZ order, once and for all.

    Args:
        weight: a plain matrix [K, N], bfloat16 or float16; N is a multiple of 16.

    Returns:
        [N / 16, K, 16], contiguous: tile n holds the columns 16 n .. 16 n + 15. The ops take it
        wherever they take the matrix, by its rank.

    Raises:
        ValueError: the weight has another rank, dtype or number of columns.
    """
    if weight.dim() != 2 or weight.element_size() != 2 or not weight.is_floating_point():
        raise ValueError(
            "to_nz: argument 'weight' must be a 2-D matrix of bfloat16 or float16, got"
            f" {weight.dtype} {list(weight.shape)}"
        )
    depth, columns = weight.shape
    if columns % LANES != 0:
        raise ValueError(
            f"to_nz: argument 'weight' must have a multiple of {LANES} columns, got {columns}"
        )
    return weight.reshape(depth, columns // LANES, LANES).permute(1, 0, 2).contiguous()


def declare_nz_weights(declared: bool | None = True) -> None:
    """Declare that 2-D weights of the ops hold fractal NZ bytes, in all threads, from now on.

    That is what scripts for the published aclnnSparseAttentionPto give: tensors [K, N] of a 16-bit
    dtype whose memory has the order of `to_nz`. Overrides CUSTOM_PYPTO_SPARSE_ATTENTION_WEIGHTS.
    A GE graph or a captured NPU graph keeps what was declared when it was made; every other call
    looks anew.

    Args:
        declared: False takes it back: 2-D weights are plain matrices. None: what the variable says.

    Raises:
        RuntimeError: the plugin is not loaded.
        TypeError: `declared` is neither a bool nor None.
    """
    if declared is not None and not isinstance(declared, bool):
        raise TypeError(
            "declare_nz_weights: argument 'declared' must be True, False or None, got"
            f" {declared!r:.40}"
        )
    _library().custom_pypto_sparse_attention_declare(-1 if declared is None else int(declared))


@contextlib.contextmanager
def declared_for_a_test(declared: bool = True) -> Iterator[None]:
    """Declare it for a block of a test, which has no other threads: all of them are concerned."""
    before = _library().custom_pypto_sparse_attention_declare(int(declared))
    try:
        yield
    finally:
        _library().custom_pypto_sparse_attention_declare(before)


def weights_are_nz() -> bool:
    """Whether 2-D weights are declared to hold fractal NZ bytes.

    Raises:
        RuntimeError: the variable says neither nz nor plain.
    """
    order: str = _library().custom_pypto_sparse_attention_weight_order().decode()
    if order not in ("nz", "plain"):
        raise RuntimeError(order)
    return order == "nz"


def warn_of_plain_weights() -> None:
    """Warn, once a process, that each run brings plain weights into NZ order."""
    text: bytes | None = _library().custom_pypto_sparse_attention_plain_weight_warning()
    if text is not None:
        warnings.warn(text.decode(), stacklevel=2)


@functools.cache
def _library() -> ctypes.CDLL:
    from custom_pypto.core import plugins

    ours = [each for each in plugins() if each.name == "sparse_attention"]
    if not ours or ours[0].status != "loaded":
        raise RuntimeError(
            "the plugin sparse_attention is not loaded; `custom-pypto list` shows the reason"
        )
    library = ctypes.CDLL(str(ours[0].library))
    library.custom_pypto_sparse_attention_weight_order.restype = ctypes.c_char_p
    library.custom_pypto_sparse_attention_plain_weight_warning.restype = ctypes.c_char_p
    return library
