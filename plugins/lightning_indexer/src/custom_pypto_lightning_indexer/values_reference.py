"""npu_lightning_indexer and its gradient in plain PyTorch, in float64, and how to compare them."""

from __future__ import annotations

import math
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from custom_pypto_plugin import SampleInput
from torch import Tensor

from . import reference, selection_comparison
from .ops import ALL_TOKENS

_RELATIVE = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float32: 1e-5, torch.float64: 1e-9}


def lightning_indexer(
    query: Tensor,
    key: Tensor,
    weights: Tensor,
    *,
    pre_tokens: int = ALL_TOKENS,
    next_tokens: int = ALL_TOKENS,
    return_value: bool = False,
    layout_key: str = "BSND",
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """(positions, values or [0]); arguments as the op's."""
    del pre_tokens, next_tokens
    indices = reference.lightning_indexer(query, key, weights, layout_key=layout_key, **options)
    if not return_value:
        return indices, query.new_empty(0)
    return indices, values_of(indices, query, key, weights, layout_key=layout_key, **options)


def values_of(
    indices: Tensor, query: Tensor, key: Tensor, weights: Tensor, **options: Any
) -> Tensor:
    """The scores of the keys at these positions, -inf for -1; in query's dtype."""
    values = torch.full(indices.shape, -torch.inf, dtype=torch.float64, device="cpu")
    for at, scores in reference.score_rows(query, key, weights, **options):
        chosen = indices[at].long()
        chosen = chosen[chosen >= 0]
        values[at][: len(chosen)] = scores[chosen]
    return values.to(query.dtype)


def lightning_indexer_grad(
    query: Tensor,
    key: Tensor,
    dy: Tensor,
    sparse_indices: Tensor,
    weights: Tensor,
    actual_seq_lengths_query: Tensor | None = None,
    actual_seq_lengths_key: Tensor | None = None,
    layout: str = "BSND",
    sparse_mode: int = 3,
    pre_tokens: int = ALL_TOKENS,
    next_tokens: int = ALL_TOKENS,
) -> tuple[Tensor, ...]:
    """The gradients of query, key and weights, by torch's autograd of one row after the other."""
    del sparse_mode, pre_tokens, next_tokens  # the positions say which keys a row sees
    leaves = [t.detach().double().requires_grad_() for t in (query, key, weights)]
    group = query.shape[-2] // key.shape[-2]
    with torch.enable_grad():
        total = torch.stack([leaf.sum() for leaf in leaves]).sum() * 0.0
        for at, (of_query, of_weights), (keys,) in reference.rows_with_keys(
            leaves[::2],
            leaves[1:2],
            actual_seq_lengths_query=actual_seq_lengths_query,
            actual_seq_lengths_key=actual_seq_lengths_key,
            layout_query=layout,
            layout_key=layout,
            sparse_mode=0,
        ):
            for n in range(key.shape[-2]):
                listed = sparse_indices[at][n].long()
                chosen = listed >= 0
                heads = slice(n * group, (n + 1) * group)
                dots = of_query[heads] @ keys[listed[chosen], n].T
                scores = of_weights[heads] @ torch.relu(dots)
                total = total + (scores * dy[at][n][chosen].double()).sum()
        gradients = torch.autograd.grad(total, leaves)
    return tuple(g.to(t.dtype) for g, t in zip(gradients, (query, key, weights), strict=True))


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare the positions, and the values with those of the positions found."""
    given = bind_arguments(contract("npu_lightning_indexer"), sample.args, sample.kwargs)
    has_values = given.pop("return_value")
    selection_comparison.compare(actual[0], expected[0], SampleInput((), given))
    wanted = expected[1]
    if has_values:
        wanted = values_of(actual[0], **given)
    assert_close("values", actual[1], wanted)


def compare_gradients(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Each by the largest number in it, as sums of many terms round."""
    del sample
    for name, left, right in zip(("query", "key", "weights"), actual, expected, strict=True):
        assert_close(f"gradient of {name}", left, right)


def assert_close(name: str, actual: Tensor, expected: Tensor) -> None:
    """Raise AssertionError unless all errors are small against the largest number."""
    # Whoever asks for the reference alone need not have the suite.
    from custom_pypto_testing.comparison import Tolerance, assert_tensors_close

    largest = expected.double().nan_to_num(0.0, 0.0, 0.0).abs().max() if expected.numel() else 0.0
    limit = _RELATIVE[expected.dtype] * float(largest)
    tolerance = Tolerance(relative=0.0, absolute=limit, cosine=math.inf)
    assert_tensors_close(name, actual, expected, {expected.dtype: tolerance})
