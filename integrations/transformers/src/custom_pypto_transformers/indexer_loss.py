"""The loss of the indexers: their scores learn the attention to the keys that they select.

The indexers have no other gradient, because a selection has no derivative. This one reaches nothing
else, because their inputs are detached.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_ATTRIBUTE = "_custom_pypto_loss"


class IndexerLoss:
    """The divergence of one layer's scores from its attention, token by token."""

    def __init__(self) -> None:
        self.terms: list[tuple[Tensor, Tensor]] = []
        self._scores: Tensor | None = None
        self._begin = 0

    def expect(self, scores: Tensor) -> None:
        """Begin with the scores [B, S, K] or [B * S, K] of the selected keys, with gradients."""
        self._scores, self._begin = scores, 0

    def add(
        self, queries: Tensor, keys: Tensor, indices: Tensor, lse: Tensor, scale: float
    ) -> None:
        """Compare the scores of the next tokens with their attention, which gets no gradient.

        Args:
            queries: [B, S, N, D].
            keys: [B, T, 1, D].
            indices: [B, S, K], -1 for none.
            lse: [B, S, N], the log-sum-exp of all products times `scale`.
        """
        if self._scores is None:
            return
        end = self._begin + indices.shape[1]
        of_batch = self._scores.reshape(len(indices), -1, indices.shape[2])
        scores, self._begin = of_batch[:, self._begin : end].float(), end
        valid = indices >= 0
        with torch.no_grad():
            row = torch.arange(len(indices), device=indices.device)[:, None, None]
            selected = keys[row, indices.clamp(min=0).long(), 0]
            products = torch.einsum("bsnd,bskd->bsnk", queries, selected).float() * scale
            weights = (products - lse[..., None]).exp().mean(2)
            weights = torch.where(valid, weights, 0.0).nan_to_num()
        logs = scores.masked_fill(~valid, torch.finfo(torch.float32).min).log_softmax(-1)
        term = (weights * (weights.clamp(min=1e-30).log() - logs)).sum(-1)
        if not _is_computed_again():
            # Padding sees no key.
            self.terms.append((term.sum(), valid.any(-1).sum()))

    def total(self) -> Tensor:
        """Return the mean over the tokens since the last call."""
        sums, counts = (torch.stack(each).sum() for each in zip(*self.terms, strict=True))
        self.terms = []
        return sums / counts.clamp(min=1)


class IndexerLosses:
    """The losses of all layers that have an indexer of their own."""

    def __init__(self, losses: list[IndexerLoss]) -> None:
        self._losses = losses

    def total(self) -> Tensor:
        """Sum the mean divergence of a token over the layers, for the last forward passes.

        Raises:
            RuntimeError: no layer has selected keys since the last call.
        """
        made = [loss.total() for loss in self._losses if loss.terms]
        if not made:
            raise RuntimeError(
                "indexer_losses: no layer has selected keys by npu_lightning_indexer; call the"
                " model in the with block, on a CPU, with gradients enabled and"
                " attn_implementation='custom_pypto'; checkpoint with use_reentrant=False"
            )
        return torch.stack(made).sum()


def _is_computed_again() -> bool:
    """Whether a backward pass runs: activation checkpointing repeats the forward pass in it."""
    return torch._C._current_graph_task_id() != -1


@contextmanager
def indexer_losses(model: nn.Module) -> Iterator[IndexerLosses]:
    """Let the indexers of a model learn from the forward passes in this context.

    Yields:
        An object whose `total` returns their loss after a forward pass. It is DeepSeek's: the
        Kullback-Leibler divergence of the softmax of the scores from the attention that all heads
        together pay to the selected keys. It has gradients for the indexers' weights only, and the
        model's own loss has none for these: add the two, and step.
    """
    modules = [module for module in model.modules() if getattr(module, "is_fused_indexer", False)]
    losses = [IndexerLoss() for _ in modules]
    outer = [getattr(module, _ATTRIBUTE, None) for module in modules]
    for module, loss in zip(modules, losses, strict=True):
        setattr(module, _ATTRIBUTE, loss)
    try:
        yield IndexerLosses(losses)
    finally:
        for module, before in zip(modules, outer, strict=True):
            setattr(module, _ATTRIBUTE, before)


def loss_of(indexer: Any) -> IndexerLoss | None:
    """The loss that an indexer learns from; None if it does not learn or gradients are off."""
    found: IndexerLoss | None = getattr(indexer, _ATTRIBUTE, None)
    return found if torch.is_grad_enabled() else None
