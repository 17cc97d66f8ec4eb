"""The published sizes, data and pass rule. What is expected follows from the definition alone."""

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch
from custom_pypto_lightning_indexer.samples import DEEPSEEK_V32, Sizes, paged

pytestmark = pytest.mark.slow
indexer = torch.ops.custom_pypto.npu_lightning_indexer_pto
HEADS, SIZE, BLOCK = DEEPSEEK_V32.heads, DEEPSEEK_V32.depth, DEEPSEEK_V32.block_size
COUNT = 2048
DIFFERING = 1
"""How many of a row's positions may be others: the published rule."""
RELATIVE = 1e-5
"""How much the scores of positions that swap places may differ, of the row's largest: ours."""

# 32 to 128K keys, twelve lengths four times over.
MIXED = [131072, 65536, 65647, 32779, 16385, 8194, 2055, 1029, 2048, 256, 127, 32] * 4

RAGGED = torch.randint(1, 8193, (32,), generator=torch.Generator().manual_seed(32)).tolist()
SIZES: dict[str, tuple[list[int], int]] = {
    "32-ragged": (RAGGED, 3),
    "4-of-64K": ([65536] * 4, 1),
    "48-mixed": (MIXED, 4),
    "2-of-122": ([122] * 2, 3),
}
"""Key lengths, and query tokens of each sequence."""
EXAMINED = {"48-mixed": [13 * i % 48 for i in range(12)]}
"""The sequences that are compared, of the largest size: each length once, from all four dozens."""


def score(query: torch.Tensor, weights: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """Scores [S1, n] of query [S1, N1, D] with weights [S1, N1] for keys [n, D], in fp32."""
    dots = (query.flatten(0, 1) @ keys.float().T).relu_()
    return (weights.unsqueeze(1) @ dots.view(*weights.shape, -1)).squeeze(1)


def check_row(positions: torch.Tensor, scores: torch.Tensor, where: str) -> None:
    count = min(len(scores), COUNT)
    chosen = positions[:count]
    assert positions[count:].eq(-1).all(), f"{where}: more than {count} positions"
    best = scores.topk(count).indices
    others = set(chosen.tolist()) - set(best.tolist())
    assert len(others) <= DIFFERING, f"{where}: {len(others)} are not of the best {count}"
    assert len(chosen.unique()) == count, f"{where}: a position was chosen twice"
    # A position that is not of the best has at least nearly the score of one that is.
    slack = RELATIVE * float(scores.abs().max())
    gap = float((scores[best] - scores[chosen]).abs().max())
    assert gap <= slack, f"{where}: in some place a score is {gap:.3g} off; {slack:.3g} are allowed"


@pytest.mark.parametrize("size", SIZES)
def test_published_size(size: str) -> None:
    """Every row, of all sequences or of those that are examined, is held against its scores."""
    lengths, tokens = SIZES[size]
    # Normally distributed, blocks in random order.
    sample = paged("cpu", "", Sizes(lengths, tokens, HEADS, 1, SIZE, BLOCK))
    query, key, weights = sample.args
    positions = indexer(*sample.args, **sample.kwargs)
    for b in EXAMINED.get(size, range(len(lengths))):
        length = lengths[b]
        blocks = sample.kwargs["block_table"][b, : -(-length // BLOCK)].long()
        # A few blocks at a time: what is between keys and scores is many times their size.
        parts = (key[some].view(-1, SIZE) for some in blocks.split(32))
        q, w = query[b].float(), weights[b].float()
        scores = torch.cat([score(q, w, each) for each in parts], -1)
        for s in range(tokens):
            seen = scores[s, : max(length - (tokens - 1 - s), 0)]
            check_row(positions[b, s, 0].long(), seen, f"row {[b, s]}")
