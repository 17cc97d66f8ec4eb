"""How a result is judged against the reference.

The tolerance is the published one, sharpened: ``isclose(rtol=0.03, atol=1e-4)`` on 99.9 % of the
elements and a relative L2 error of at most 5e-3; smaller where the dtype allows it.

The fused op needs more thought. It keeps the 2048 best of up to 131072 scores, so the best one that
is dropped and the worst one that is kept often differ by less than the roundings of the query.
Another order of summation then keeps another key, rightly, and one key of 2048 moves a flat
attention row by about 3 %. So the two steps are judged one by one: every key that the op
dropped must score, in the reference's own scores, no better than the keys it kept (within
``SCORE_TOLERANCE``); and the output must be close to the reference's attention *over the op's own
selection*. The op does not return its selection; its pieces, which give the same bits as the fused
op (a test holds that), do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import reference
from .constants import TOP_K

if TYPE_CHECKING:
    from custom_pypto_plugin import SampleInput

# A score's error as a part of the row's largest score. The reference's and the kernel's fp32 sums
# round to different neighbours now and then, and that runs through three projections.
SCORE_TOLERANCE = {torch.bfloat16: 4e-3, torch.float16: 1e-3, torch.float32: 1e-5}
_RELATIVE = {
    torch.bfloat16: 3e-2,
    torch.float16: 1e-2,
    torch.float32: 1e-3,
    torch.float64: 1e-9,
}
_ABSOLUTE = {
    torch.bfloat16: 1e-4,
    torch.float16: 1e-4,
    torch.float32: 1e-5,
    torch.float64: 1e-9,
}
_L2 = {torch.bfloat16: 5e-3, torch.float16: 1e-3, torch.float32: 1e-5, torch.float64: 1e-9}
CLOSE_PART = 0.999
_CACHES = (10, 11, 19)  # among the fused op's arguments


def assert_close(actual: Tensor, expected: Tensor, what: str = "output") -> None:
    """Raise AssertionError unless ``actual`` is within the tolerance of its dtype.

    Shape, dtype and the positions of infinities and NaN must be equal.
    """
    assert actual.shape == expected.shape, f"{what}: {actual.shape} is not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype} is not {expected.dtype}"
    if not actual.dtype.is_floating_point:
        assert torch.equal(actual, expected), f"{what}: integers differ"
        return
    if actual.numel() == 0:
        return
    for kind in (torch.isnan, torch.isposinf, torch.isneginf):
        assert torch.equal(kind(actual), kind(expected)), f"{what}: inf or NaN elsewhere"
    finite = expected.isfinite()
    left, right = actual[finite].double(), expected[finite].double()
    if left.numel() == 0:
        return
    error = (left - right).abs()
    close = error <= _ABSOLUTE[actual.dtype] + _RELATIVE[actual.dtype] * right.abs()
    part = close.double().mean().item()
    worst = int(error.argmax())
    message = (
        f"largest error {error[worst].item():.3g} where {right[worst].item():.6g} was expected"
        f" and {left[worst].item():.6g} found"
    )
    # Of few elements, 99.9 % is all of them but one.
    allowed = max(1, int(left.numel() * (1 - CLOSE_PART)))
    outside = int((~close).sum())
    assert outside <= allowed, f"{what}: only {part:.2%} of the elements are close; {message}"
    norm = right.norm().item()
    l2 = error.norm().item() / norm if norm else error.norm().item()
    assert l2 <= _L2[actual.dtype], f"{what}: relative L2 error {l2:.3g}; {message}"


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare the outputs of npu_mla_prolog, npu_indexer_prolog or npu_sparse_flash_attention."""
    del sample
    if isinstance(expected, Tensor):
        assert_close(actual, expected)
        return
    assert len(actual) == len(expected), f"{len(actual)} outputs instead of {len(expected)}"
    for number, (left, right) in enumerate(zip(actual, expected, strict=True)):
        assert_close(left, right, f"output {number}")


def compare_fused(actual: Tensor, expected: Tensor, sample: SampleInput) -> None:
    """Compare npu_sparse_attention_pto's output; ``sample`` holds its arguments before the call."""
    given = (*sample.args, *sample.kwargs.values())
    selection = _selected_by_pieces(_with_own_caches(given))
    arguments = _with_own_caches(given)
    decoded = reference.decode(*arguments)
    assert_selection(selection, decoded, SCORE_TOLERANCE[actual.dtype])
    same = _rows_chosen_alike(selection, decoded.selection())
    attended = reference.attend(decoded, arguments, selection)
    attended[same] = expected[same]
    assert_close(actual, attended)


def assert_selection(selection: Tensor, decoded: reference.Decoded, tolerance: float) -> None:
    """Raise AssertionError unless each row's positions are a top-k within ``tolerance``."""
    count = selection.shape[-1]
    rows = selection.reshape(-1, count)
    for row, (indices, scores) in enumerate(zip(rows, decoded.scores, strict=True)):
        chosen = indices[indices >= 0].to(torch.int64)
        kept = min(count, len(scores))
        assert len(chosen) == kept, f"row {row}: {len(chosen)} positions instead of {kept}"
        assert len(chosen.unique()) == kept, f"row {row}: a position was chosen twice"
        if kept == len(scores):
            continue
        dropped = torch.ones(len(scores), dtype=torch.bool, device=scores.device)
        dropped[chosen] = False
        gap = (scores[dropped].max() - scores[chosen].min()).item()
        limit = tolerance * scores.abs().max().item()
        assert gap <= limit, (
            f"row {row}: a dropped key scores {gap:.3g} more than a chosen one;"
            f" {limit:.3g} is allowed"
        )


def _with_own_caches(arguments: tuple[Any, ...]) -> tuple[Tensor, ...]:
    return tuple(a.clone() if i in _CACHES else a for i, a in enumerate(arguments))


def _selected_by_pieces(arguments: tuple[Tensor, ...]) -> Tensor:
    ops = torch.ops.custom_pypto
    x, sin, cos, cache_index = arguments[0], arguments[7], arguments[8], arguments[9]
    block_table, act_seqs = arguments[12:14]
    _, _, q_norm = ops.npu_mla_prolog(*arguments[:12])
    query, weights = ops.npu_indexer_prolog(
        x, q_norm, *arguments[14:19], sin, cos, cache_index, arguments[19]
    )
    selection: Tensor = ops.npu_lightning_indexer_pto(
        query,
        arguments[19],
        weights,
        actual_seq_lengths_key=act_seqs,
        block_table=block_table,
        sparse_count=TOP_K,
    )
    return selection


def _rows_chosen_alike(left: Tensor, right: Tensor) -> Tensor:
    return (left.sort(-1).values == right.sort(-1).values).all(-1).squeeze(-1)
