"""Whether the positions that a kernel chose are the highest-scoring ones, up to fp32 rounding."""

from __future__ import annotations

from typing import Any

import torch
from custom_pypto_plugin import SampleInput

from .reference import Row, score_rows

RELATIVE = 1e-5
"""Scores nearer than this, relative to the larger one, may swap places."""

ROUNDING = 2.0**-21
"""As may scores whose difference is less than this part of what their terms add up to without
their signs: four roundings of fp32. It matters where terms cancel."""


def compare(actual: Any, expected: Any, sample: SampleInput) -> None:
    """Compare two results of the op for the arguments of `sample`.

    Rows with exactly the expected positions pass. In any other the scores, in float64, must
    descend, none that was left out may exceed the last one chosen, and the number of positions must
    be right.

    Raises:
        AssertionError: they do not; the message names the row and the positions.
    """
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise AssertionError(
            f"expected {expected.dtype} {list(expected.shape)},"
            f" got {actual.dtype} {list(actual.shape)}"
        )
    if actual.equal(expected):
        return
    unscored = torch.ones(expected.shape[:-1], dtype=torch.bool)
    for row in score_rows(*sample.args, **sample.kwargs):
        unscored[row.at] = False
        _compare_row(row, actual[row.at].long(), expected[row.at].long())
    wrong = unscored & actual.ne(-1).any(-1)
    if wrong.any():
        at = wrong.nonzero()[0].tolist()
        raise AssertionError(f"row {at} sees no key, so it must be all -1, got {actual[tuple(at)]}")


def _compare_row(row: Row, actual: torch.Tensor, expected: torch.Tensor) -> None:
    if actual.equal(expected):
        return
    where = f"row {list(row.at)}"
    count = int(expected.ne(-1).sum())
    chosen, rest = actual[:count], actual[count:]
    eff = len(row.scores)
    if not rest.eq(-1).all() or not ((chosen >= 0) & (chosen < eff)).all():
        raise AssertionError(
            f"{where}: must hold {count} positions below {eff}, then -1, got {actual.tolist()}"
        )
    if len(set(chosen.tolist())) != count:
        raise AssertionError(f"{where}: a position was chosen twice: {chosen.tolist()}")
    specials = row.scores.isnan() | row.scores.isinf()
    differing = chosen.ne(expected[:count])
    if (differing & (specials[chosen] | specials[expected[:count]])).any():
        at = int(differing.nonzero()[0])
        raise AssertionError(
            f"{where}: place {at} is position {int(chosen[at])} with score"
            f" {float(row.scores[chosen[at]])}, expected position {int(expected[at])} with score"
            f" {float(row.scores[expected[at]])}"
        )
    _check_descends(row, chosen, where)


def _check_descends(row: Row, chosen: torch.Tensor, where: str) -> None:
    """Each chosen score is at least every later one and every one left out."""
    left_out = torch.ones(len(row.scores), dtype=torch.bool)
    left_out[chosen] = False
    finite = row.scores.isfinite()
    chosen = chosen[finite[chosen]]
    others = (left_out & finite).nonzero().flatten()
    order = torch.cat([chosen, others])
    scores, magnitudes = row.scores[order], row.magnitudes[order]
    slack = RELATIVE / 2 * scores.abs() + ROUNDING / 2 * magnitudes
    # Half of the slack is each score's own: the lowest that it may be taken for.
    highest_later = (scores - slack).flip(0).cummax(0).values.flip(0)
    wrong = (scores + slack)[: len(chosen)] < highest_later[: len(chosen)]
    if wrong.any():
        at = int(wrong.nonzero()[0])
        better = at + int((scores - slack)[at:].argmax())
        raise AssertionError(
            f"{where}: place {at} is position {int(order[at])} with score {float(scores[at])}, but"
            f" position {int(order[better])} scores {float(scores[better])}"
        )
