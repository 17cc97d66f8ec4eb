"""How a result is judged against the reference.

The tolerance is the published one, sharpened: ``isclose(rtol=0.03, atol=1e-4)`` on 99.9 % of the
elements and a relative L2 error of at most 5e-3; smaller where the dtype allows it.

The fused op keeps the 2048 best of up to 131072 scores. The best score that it drops and the worst
that it keeps often differ by less than the roundings of the query, so another order of summation
may keep another key. One key of 2048 moves a flat attention row by about 3 %. So the two steps are
compared one by one. By the reference's scores no dropped key may be better than a kept one, within
``SCORE_TOLERANCE``. The output must be close to the reference's attention over the op's own
selection. The op does not return its selection; its pieces do, which give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from torch import Tensor

from . import reference
from .ops import TOP_K

if TYPE_CHECKING:
    from custom_pypto_plugin import SampleInput
    from custom_pypto_testing.comparison import Tolerance

# A score's error as a part of the row's largest score. The reference's and the kernel's fp32 sums
# round to different neighbours now and then, and that runs through three projections.
SCORE_TOLERANCE = {torch.bfloat16: 4e-3, torch.float16: 1e-3, torch.float32: 1e-5}
# Relative, absolute, cosine.
_TOLERANCES = {
    torch.bfloat16: (3e-2, 1e-4, 1.2e-5),
    torch.float16: (1e-2, 1e-4, 5e-7),
    torch.float32: (1e-3, 1e-5, 5e-11),
    torch.float64: (1e-9, 1e-9, 5e-19),
}


def assert_close(actual: Tensor, expected: Tensor, what: str = "output") -> None:
    """Raise AssertionError unless ``actual`` is within the tolerance of its dtype.

    Shape, dtype and the positions of infinities and NaN must be equal.
    """
    # Whoever asks for the reference alone need not have the suite.
    from custom_pypto_testing.comparison import assert_tensors_close

    assert_tensors_close(what, actual, expected, _tolerances())


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare the outputs of every op but the fused one."""
    from custom_pypto_testing import comparison

    del sample
    comparison.assert_close(actual, expected, _tolerances())


def _tolerances() -> dict[torch.dtype, Tolerance]:
    from custom_pypto_testing.comparison import Tolerance

    return {
        dtype: Tolerance(relative, absolute, cosine, outliers=1e-3)
        for dtype, (relative, absolute, cosine) in _TOLERANCES.items()
    }


def compare_fused(actual: Tensor, expected: Tensor, sample: SampleInput) -> None:
    """Compare npu_sparse_attention_pto's output; ``sample`` holds its arguments before the call."""
    given = bind_arguments(contract("npu_sparse_attention_pto"), sample.args, sample.kwargs)
    selection = _select_by_pieces(_with_own_caches(given))
    given = _with_own_caches(given)
    decoded = reference.decode(given)
    assert_selection(selection, decoded, SCORE_TOLERANCE[actual.dtype])
    same = _rows_chosen_alike(selection, decoded.selection())
    attended = reference.attend(decoded, given, selection)
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


def _with_own_caches(given: dict[str, Tensor]) -> dict[str, Tensor]:
    return {n: each.clone() if n.endswith("_cache") else each for n, each in given.items()}


def _select_by_pieces(given: dict[str, Tensor]) -> Tensor:
    ops = torch.ops.custom_pypto
    _, _, q_norm = ops.npu_mla_prolog(**reference.arguments_of(reference.mla_prolog, given))
    given = {**given, "q_norm": q_norm}
    query, weights = ops.npu_indexer_prolog(
        **reference.arguments_of(reference.indexer_prolog, given)
    )
    selection: Tensor = ops.npu_lightning_indexer_pto(
        query,
        given["index_k_cache"],
        weights,
        actual_seq_lengths_key=given["act_seqs"],
        block_table=given["block_table"],
        sparse_count=TOP_K,
    )
    return selection


def _rows_chosen_alike(left: Tensor, right: Tensor) -> Tensor:
    return (left.sort(-1).values == right.sort(-1).values).all(-1).squeeze(-1)
