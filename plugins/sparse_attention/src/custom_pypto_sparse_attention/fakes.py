"""The shape rules of the four ops, for symbolic and concrete sizes alike.

They refuse what can be refused without looking at values, in the kernels' words, so that a mistake
shows while a graph is traced. A symbolic size is taken for right: to compare it would fix it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from .nz import LANES
from .weight_order import DECLARATION, weights_are_nz

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ACTIVATIONS = (torch.bfloat16, torch.float16, torch.float32)
_INTEGERS = (torch.int32, torch.int64)


class _Argument:
    """A tensor argument under check, as custom_pypto::Arg is in the kernels."""

    def __init__(self, op: str, name: str, tensor: Tensor) -> None:
        self.op = op
        self.name = name
        self.tensor = tensor

    def check(self, condition: bool, message: str) -> None:
        """Raise RuntimeError with the op, the argument and ``message`` unless ``condition``."""
        if not condition:
            raise RuntimeError(f"{self.op}: argument '{self.name}' {message}")

    def rank(self, *allowed: int, meaning: str = "") -> None:
        """The number of dimensions is one of ``allowed``, which is ``meaning``."""
        found = self.tensor.dim()
        choices = " or ".join(f"{rank}-D" for rank in allowed) + (
            f" ({meaning})" if meaning else ""
        )
        self.check(
            found in allowed, f"must be {choices}, got {found}-D {_sizes(self.tensor.shape)}"
        )

    def size(self, dim: int, expected: int, meaning: str) -> None:
        """Dimension ``dim`` has size ``expected``, which is ``meaning``."""
        found = self.tensor.shape[dim]
        self.check(
            not _differ(found, expected),
            f"must have size {expected} in dimension {dim} ({meaning}), got {found}"
            f" in {_sizes(self.tensor.shape)}",
        )

    def dtype(self, allowed: Sequence[torch.dtype]) -> None:
        """The dtype is one of ``allowed``."""
        *first, last = map(_name, allowed)
        found = self.tensor.dtype
        self.check(found in allowed, f"must be {', '.join(first)} or {last}, got {_name(found)}")

    def same_dtype(self, other: _Argument) -> None:
        """The dtype is that of ``other``."""
        found, expected = self.tensor.dtype, other.tensor.dtype
        self.check(
            found == expected,
            f"must have the dtype of '{other.name}' ({_name(expected)}), got {_name(found)}",
        )

    def like_tokens(self, x: _Argument, last: int | None, meaning: str) -> None:
        """The sizes of x but for the last dimension, which has size ``last`` (None: is missing)."""
        rank = x.tensor.dim()
        self.rank(rank if last is not None else rank - 1)
        for dim in range(rank - 1):
            self.size(dim, x.tensor.shape[dim], "as many tokens as x")
        if last is not None:
            self.size(-1, last, meaning)

    def parameter(self, x: _Argument) -> None:
        """The dtype of x, or float32."""
        if self.tensor.dtype != torch.float32:
            self.same_dtype(x)

    def cache(self, x: _Argument, size: int, meaning: str) -> None:
        """[blocks, block_size, 1, size] of the dtype of x."""
        self.rank(4)
        self.same_dtype(x)
        self.size(2, 1, "one key head")
        self.size(3, size, meaning)

    def same_blocks(self, other: _Argument) -> None:
        """As many blocks, as large, as ``other``."""
        for dim in range(2):
            self.check(
                not _differ(self.tensor.shape[dim], other.tensor.shape[dim]),
                f"must have as many blocks, as large, as '{other.name}'"
                f" {_sizes(other.tensor.shape)}, got {_sizes(self.tensor.shape)}",
            )

    def weight(self, x: _Argument, depth: int, meaning: str) -> int:
        """A plain matrix [depth, N] or its fractal NZ order [N / 16, depth, 16]. Returns N."""
        self.rank(2, 3)
        self.same_dtype(x)
        shape = self.tensor.shape
        if len(shape) == 2:
            self.size(0, depth, meaning)
            if weights_are_nz():
                self._declared_nz()
            return shape[1]
        self.size(2, LANES, "columns side by side in fractal NZ order")
        self.size(1, depth, meaning)
        return shape[0] * LANES

    def _declared_nz(self) -> None:
        """A matrix whose bytes are declared to be in fractal NZ order can hold them."""
        tensor, columns = self.tensor, self.tensor.shape[1]
        for holds, what in (
            (tensor.dtype != torch.float32, "be bfloat16 or float16"),
            (not isinstance(columns, int) or columns % LANES == 0, "have a multiple of 16 columns"),
            (tensor.is_contiguous(), "be contiguous"),
        ):
            self.check(
                holds,
                f"must {what} where 2-D weights are declared to hold fractal NZ bytes"
                f" ({DECLARATION}), got {_name(tensor.dtype)}{_sizes(tensor.shape)} with strides"
                f" {_sizes(tensor.stride())}; take the declaration back if this is a plain matrix",
            )

    def columns(self, found: int, expected: int, meaning: str) -> None:
        """A weight has as many columns as ``expected``."""
        self.check(
            not _differ(found, expected),
            f"must have {expected} columns ({meaning}), got {found} in {_sizes(self.tensor.shape)}",
        )


def _differ(found: int, expected: int) -> bool:
    return isinstance(found, int) and isinstance(expected, int) and found != expected


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _sizes(shape: Sequence[int]) -> str:
    return str(list(shape))


def _check_angles(x: _Argument, sin: _Argument, cos: _Argument) -> int:
    sin.rank(x.tensor.dim())
    size = sin.tensor.shape[-1]
    sin.check(
        not isinstance(size, int) or (size >= 2 and size % 2 == 0),
        "must have an even, positive size in its last dimension (pairs of dims are rotated), got"
        f" {_sizes(sin.tensor.shape)}",
    )
    for angle in (sin, cos):
        angle.like_tokens(x, size, "the size of sin")
        angle.parameter(x)
    return size


def _check_mla(
    op: str,
    x: Tensor,
    w_dq: Tensor,
    w_uq_qr: Tensor,
    w_uk: Tensor,
    w_dkv_kr: Tensor,
    gamma_cq: Tensor,
    gamma_ckv: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
) -> int:
    """Check the MLA prolog's arguments. Returns the columns of w_dq."""

    def argument(name: str, tensor: Tensor) -> _Argument:
        return _Argument(op, name, tensor)

    tokens = argument("x", x)
    tokens.rank(2, 3)
    tokens.dtype(_ACTIVATIONS)
    hidden = x.shape[-1]
    rope = _check_angles(tokens, argument("sin", sin), argument("cos", cos))
    up_key = argument("w_uk", w_uk)
    up_key.rank(3)
    up_key.same_dtype(tokens)
    heads, nope, latent = w_uk.shape

    rank = argument("w_dq", w_dq).weight(tokens, hidden, "the hidden size of x")
    _check_gamma(argument("gamma_cq", gamma_cq), tokens, rank, "the columns of w_dq")
    up_query = argument("w_uq_qr", w_uq_qr)
    up_query.columns(
        up_query.weight(tokens, rank, "the columns of w_dq"),
        heads * (nope + rope),
        "heads of w_uk times its nope size and the size of sin",
    )
    down_key = argument("w_dkv_kr", w_dkv_kr)
    down_key.columns(
        down_key.weight(tokens, hidden, "the hidden size of x"),
        latent + rope,
        "the latent size of w_uk and the size of sin",
    )
    _check_gamma(argument("gamma_ckv", gamma_ckv), tokens, latent, "the latent size of w_uk")
    kv, kr = argument("kv_cache", kv_cache), argument("kr_cache", kr_cache)
    kv.cache(tokens, latent, "the latent size of w_uk")
    kr.cache(tokens, rope, "the size of sin")
    kr.same_blocks(kv)
    _check_slots(argument("cache_index", cache_index), tokens)
    return rank


def _check_gamma(gamma: _Argument, x: _Argument, size: int, meaning: str) -> None:
    gamma.rank(1)
    gamma.size(0, size, meaning)
    gamma.parameter(x)


def _check_slots(cache_index: _Argument, x: _Argument) -> None:
    cache_index.like_tokens(x, None, "")
    cache_index.dtype(_INTEGERS)


def _check_indexer(
    op: str,
    x: Tensor,
    query_rank: int,
    w_idx_qb: Tensor,
    w_idx_k: Tensor,
    w_idx_proj: Tensor,
    in_gamma_k: Tensor,
    in_beta_k: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    index_k_cache: Tensor,
) -> tuple[int, int]:
    """Check the indexer prolog's arguments. Returns (heads, head size)."""

    def argument(name: str, tensor: Tensor) -> _Argument:
        return _Argument(op, name, tensor)

    tokens = argument("x", x)
    tokens.rank(2, 3)
    tokens.dtype(_ACTIVATIONS)
    hidden = x.shape[-1]
    rope = _check_angles(tokens, argument("sin", sin), argument("cos", cos))
    size = argument("w_idx_k", w_idx_k).weight(tokens, hidden, "the hidden size of x")
    argument("sin", sin).check(
        not (isinstance(rope, int) and isinstance(size, int) and rope > size),
        f"must not be wider than the head size {size} (the columns of w_idx_k), got {rope}"
        " in its last dimension",
    )
    proj = argument("w_idx_proj", w_idx_proj)
    heads = proj.weight(tokens, hidden, "the hidden size of x")
    proj.check(
        not isinstance(heads, int) or heads >= 1,
        f"must have at least one column (a head of the indexer), got {_sizes(w_idx_proj.shape)}",
    )
    up_query = argument("w_idx_qb", w_idx_qb)
    up_query.columns(
        up_query.weight(tokens, query_rank, "the size of the normed query"),
        heads * size,
        "the columns of w_idx_proj times those of w_idx_k",
    )
    for name, parameter in (("in_gamma_k", in_gamma_k), ("in_beta_k", in_beta_k)):
        _check_gamma(argument(name, parameter), tokens, size, "the columns of w_idx_k")
    argument("index_k_cache", index_k_cache).cache(tokens, size, "the columns of w_idx_k")
    _check_slots(argument("cache_index", cache_index), tokens)
    return heads, size


def _check_attention(
    query: Tensor,
    query_rope: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor,
    lengths: Tensor,
    sparse_mode: int,
) -> None:
    def argument(name: str, tensor: Tensor) -> _Argument:
        return _Argument("npu_sparse_flash_attention", name, tensor)

    table = argument("block_table", block_table)
    table.rank(2)
    table.dtype(_INTEGERS)
    tokens = argument("query", query)
    tokens.rank(3, 4)
    tokens.dtype(_ACTIVATIONS)
    rotated = argument("query_rope", query_rope)
    rotated.rank(query.dim(), meaning="as query")
    rotated.same_dtype(tokens)
    for dim in range(query.dim() - 1):
        rotated.size(dim, query.shape[dim], "query's shape but for the last dimension")
    kv, kr = argument("kv_cache", kv_cache), argument("kr_cache", kr_cache)
    kv.cache(tokens, query.shape[-1], "the size of query's heads")
    kr.cache(tokens, query_rope.shape[-1], "the size of query_rope's heads")
    kr.same_blocks(kv)
    indices = argument("sparse_indices", sparse_indices)
    indices.rank(query.dim(), meaning="as query")
    indices.dtype(_INTEGERS)
    indices.size(-2, 1, "one key head")
    for dim in range(query.dim() - 2):
        indices.size(dim, query.shape[dim], "as many tokens as query")
    if sparse_mode not in (0, 3):
        raise RuntimeError(f"{tokens.op}: argument 'sparse_mode' must be 0 or 3, got {sparse_mode}")
    cached = argument("actual_seq_lengths_kv", lengths)
    cached.rank(1)
    cached.size(0, block_table.shape[0], "the number of sequences")
    cached.dtype(_INTEGERS)
    if query.dim() == 4:
        tokens.size(0, block_table.shape[0], "the rows of block_table")


def _on_one_device(op: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Refuse tensors on several devices before a fake looks at them.

    A call with one tensor on meta among real ones runs the fake: without the check it would return
    memory that nothing was written to.
    """

    def of_fake(fake: Callable[_P, _R]) -> Callable[_P, _R]:
        names = tuple(signature(fake).parameters)

        @wraps(fake)
        def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            given = {**dict(zip(names, args, strict=False)), **kwargs}
            tensors = {name: value for name, value in given.items() if isinstance(value, Tensor)}
            (first, of), *others = tensors.items()
            for name, tensor in others:
                _Argument(op, name, tensor).check(
                    tensor.device == of.device,
                    f"must be on the device of '{first}' ({of.device}), got {tensor.device}",
                )
            return fake(*args, **kwargs)

        return checked

    return of_fake


@_on_one_device("npu_mla_prolog")
def mla_prolog(
    x: Tensor,
    w_dq: Tensor,
    w_uq_qr: Tensor,
    w_uk: Tensor,
    w_dkv_kr: Tensor,
    gamma_cq: Tensor,
    gamma_ckv: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """query [.., N1, L], query_rope [.., N1, R], q_norm [.., Q], all like x."""
    rank = _check_mla(
        "npu_mla_prolog", x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos,
        cache_index, kv_cache, kr_cache,
    )  # fmt: skip
    leading, (heads, _, latent) = x.shape[:-1], w_uk.shape
    return (
        x.new_empty((*leading, heads, latent)),
        x.new_empty((*leading, heads, sin.shape[-1])),
        x.new_empty((*leading, rank)),
    )


@_on_one_device("npu_indexer_prolog")
def indexer_prolog(
    x: Tensor,
    q_norm: Tensor,
    w_idx_qb: Tensor,
    w_idx_k: Tensor,
    w_idx_proj: Tensor,
    in_gamma_k: Tensor,
    in_beta_k: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    index_k_cache: Tensor,
) -> tuple[Tensor, Tensor]:
    """query_index [.., N, D] and weights [.., N], both like x."""
    op = "npu_indexer_prolog"
    tokens, normed = _Argument(op, "x", x), _Argument(op, "q_norm", q_norm)
    tokens.rank(2, 3)
    normed.rank(x.dim())
    normed.same_dtype(tokens)
    normed.like_tokens(tokens, q_norm.shape[-1], "")
    heads, size = _check_indexer(
        op, x, q_norm.shape[-1], w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k, sin, cos,
        cache_index, index_k_cache,
    )  # fmt: skip
    leading = x.shape[:-1]
    return x.new_empty((*leading, heads, size)), x.new_empty((*leading, heads))


@_on_one_device("npu_sparse_flash_attention")
def sparse_flash_attention(
    query: Tensor,
    query_rope: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    sparse_indices: Tensor,
    block_table: Tensor,
    actual_seq_lengths_kv: Tensor,
    *,
    scale: float,
    actual_seq_lengths_query: Tensor | None = None,
    sparse_mode: int = 3,
    return_softmax_lse: bool = False,
) -> tuple[Tensor, Tensor]:
    """Out like query (contiguous), lse fp32 [.., N1] or, when not asked for, [0]."""
    _check_attention(
        query, query_rope, kv_cache, kr_cache, sparse_indices, block_table, actual_seq_lengths_kv,
        sparse_mode,
    )  # fmt: skip
    shape = query.shape[:-1] if return_softmax_lse else (0,)
    return query.new_empty(query.shape), query.new_empty(shape, dtype=torch.float32)


@_on_one_device("npu_sparse_attention_pto")
def sparse_attention(
    x: Tensor,
    w_dq: Tensor,
    w_uq_qr: Tensor,
    w_uk: Tensor,
    w_dkv_kr: Tensor,
    gamma_cq: Tensor,
    gamma_ckv: Tensor,
    sin: Tensor,
    cos: Tensor,
    cache_index: Tensor,
    kv_cache: Tensor,
    kr_cache: Tensor,
    block_table: Tensor,
    act_seqs: Tensor,
    w_idx_qb: Tensor,
    w_idx_k: Tensor,
    w_idx_proj: Tensor,
    in_gamma_k: Tensor,
    in_beta_k: Tensor,
    index_k_cache: Tensor,
) -> Tensor:
    """[B, S1, N1, L] like x."""
    op = "npu_sparse_attention_pto"
    tokens = _Argument(op, "x", x)
    tokens.rank(3)
    rank = _check_mla(
        op, x, w_dq, w_uq_qr, w_uk, w_dkv_kr, gamma_cq, gamma_ckv, sin, cos, cache_index, kv_cache,
        kr_cache,
    )  # fmt: skip
    _check_indexer(
        op, x, rank, w_idx_qb, w_idx_k, w_idx_proj, in_gamma_k, in_beta_k, sin, cos, cache_index,
        index_k_cache,
    )  # fmt: skip
    index_keys = _Argument(op, "index_k_cache", index_k_cache)
    index_keys.same_blocks(_Argument(op, "kv_cache", kv_cache))
    table = _Argument(op, "block_table", block_table)
    lengths = _Argument(op, "act_seqs", act_seqs)
    for argument, dims in ((table, 2), (lengths, 1)):
        argument.rank(dims)
        argument.size(0, x.shape[0], "the number of sequences")
        argument.dtype(_INTEGERS)
    heads, _, latent = w_uk.shape
    return x.new_empty((*x.shape[:-1], heads, latent))
