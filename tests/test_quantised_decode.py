"""Decoding with int8 queries and keys (W8A8C8), as the published model calls the ops.

Prolog, caches, selection of positions: each op reads the results of the one before, with the shapes
and keywords of models/deepseek_v3_2_exp of cann-recipes-infer.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the ops)
import pytest
import torch
from custom_pypto_lightning_indexer_prolog import samples
from torch import Tensor

V32 = samples.DEEPSEEK
HEADS, SIZE, BLOCK, TOP_K = V32.heads, V32.size, V32.block_size, 256
LENGTHS, NEW = (700, 130, 300), 2
"""Tokens of each sequence, the new ones included; and how many of them are new."""


class Step:
    """One decoding step: its arguments, and the results of the ops."""

    def __init__(self, change: Callable[[dict[str, Any]], None] = lambda prolog: None) -> None:
        """Make the arguments, apply `change` to the prolog's arguments, and run the ops."""
        generator = torch.Generator().manual_seed(0)
        blocks = [-(-length // BLOCK) for length in LENGTHS]
        order = torch.randperm(sum(blocks), generator=generator).split(blocks)
        self.table = torch.full((len(LENGTHS), max(blocks)), -1, dtype=torch.int32)
        for row, numbers in zip(self.table, order, strict=True):
            row[: len(numbers)] = numbers
        self.rows = [(b, length - NEW + s) for b, length in enumerate(LENGTHS) for s in range(NEW)]
        self.prolog: dict[str, Any] = samples.arguments(
            replace(
                V32,
                tokens=len(self.rows),
                hidden=512,
                query_rank=256,
                blocks=sum(blocks),
                epsilon=1e-6,
            )
        )
        # Scales of the old keys: positive, and as large as the new keys' scales.
        self.prolog["idx_k_scale_cache"].abs_().mul_(0.1)
        self.prolog["idx_k_cache_index"] = torch.stack(
            [self.slots(b, p + 1)[-1] for b, p in self.rows]
        )
        change(self.prolog)
        self._run()

    def slots(self, sequence: int, count: int) -> Tensor:
        """The slots of the first `count` positions of a sequence."""
        positions = torch.arange(count)
        return self.table[sequence, positions // BLOCK].long() * BLOCK + positions % BLOCK

    def visible(self) -> list[tuple[int, int, Tensor]]:
        """For each new token its row, the number of positions it sees, and their slots."""
        return [(t, p + 1, self.slots(b, p + 1)) for t, (b, p) in enumerate(self.rows)]

    def _run(self) -> None:
        ops = torch.ops.custom_pypto
        lengths = {
            "query": torch.arange(NEW, len(self.rows) + 1, NEW, dtype=torch.int32),
            "key": torch.tensor(LENGTHS, dtype=torch.int32),
        }
        query, scale, weights = ops.npu_lightning_indexer_prolog_pto(
            **self.prolog, layout_query="TND", layout_key="PA_BSND"
        )
        self.index = (query, scale, weights)
        self.positions = ops.npu_quant_lightning_indexer(
            query=query.view(-1, HEADS, SIZE),
            key=self.prolog["idx_k_cache"],
            weights=weights,
            query_dequant_scale=scale.view(-1, HEADS),
            key_dequant_scale=self.prolog["idx_k_scale_cache"],
            query_quant_mode=0,
            key_quant_mode=0,
            actual_seq_lengths_query=lengths["query"],
            actual_seq_lengths_key=lengths["key"],
            block_table=self.table,
            layout_query="TND",
            layout_key="PA_BSND",
            sparse_count=TOP_K,
            sparse_mode=3,
        )


@pytest.fixture(scope="module")
def step() -> Step:
    return Step()


def test_new_tokens_choose_among_all_keys_the_new_ones_included(step: Step) -> None:
    query, scale, weights = (each.double() for each in step.index)
    keys = step.prolog["idx_k_cache"].flatten(0, 2).double()
    keys = keys * step.prolog["idx_k_scale_cache"].flatten()[:, None].double()
    for t, visible, slots in step.visible():
        dots = (query[t] * scale[t]) @ keys[slots].T
        scores = weights[t] @ dots.relu()
        chosen = step.positions[t, 0]
        count = min(visible, TOP_K)
        assert chosen[count:].eq(-1).all()
        assert len(chosen[:count].unique()) == count
        best = scores.topk(count).values
        torch.testing.assert_close(scores[chosen[:count].long()], best, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda prolog: prolog["ln_gamma_k"].mul_(8), id="scale"),
        pytest.param(lambda prolog: prolog["ln_gamma_k"].neg_(), id="key"),
    ],
)
def test_keys_that_the_prolog_writes_decide(
    step: Step, change: Callable[[dict[str, Any]], None]
) -> None:
    """Other tokens select a new key that is scaled or negated."""
    assert not torch.equal(Step(change).positions, step.positions)
