"""What vLLM's indexers select, and transformers' model with the same selection.

Rounding to bfloat16 swaps keys at the edge of the top-k, and with another key every logit differs.
With the same keys a model is continuous, so that its logits differ by rounding only.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


def record(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Tensor]]:
    """Return a dictionary that gets the positions that each layer selects, step by step."""
    from custom_pypto_vllm.index_cache import IndexCache, Int8IndexCache

    steps: dict[str, list[Tensor]] = {}

    def recorded(select: Any) -> Any:
        def selected(cache: Any, *args: Any) -> Tensor:
            positions: Tensor = select(cache, *args)
            steps.setdefault(cache.prefix, []).append(positions.clone())
            return positions

        return selected

    for cls in (IndexCache, Int8IndexCache):
        monkeypatch.setattr(cls, "select", recorded(cls.select))
    return steps


def run(model: Any, tokens: list[int], positions: list[Tensor]) -> tuple[Tensor, Select]:
    """Return the logits of a full forward that selects these positions, and the selection."""
    with Select(positions) as select, torch.no_grad():
        logits: Tensor = model(torch.tensor([tokens])).logits[0].float()
    return logits, select


def distance(a: Tensor, b: Tensor) -> float:
    """Return the greatest difference, as a share of the scale of ``b``."""
    return float((a - b).abs().max() / b.abs().max())


class Select(TorchFunctionMode):
    """Selects given positions, [tokens, top-k] for each layer, and keeps the scores of all keys."""

    def __init__(self, positions: list[Tensor]) -> None:
        super().__init__()
        self.positions = positions
        self.scores: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not torch.Tensor.topk:
            return func(*args, **kwargs or {})
        scores, positions = args[0], self.positions[len(self.scores)].long()
        # A row that sees fewer keys ends in -1. To select its own key twice changes nothing.
        own = torch.arange(len(positions)).unsqueeze(1)
        positions = torch.where(positions < 0, own, positions).unsqueeze(0)
        self.scores.append(scores[0].float().tril())
        return torch.return_types.topk((scores.gather(-1, positions), positions))

    def missed(self) -> float:
        """Return by how much of the scale a key that was left out is better than a selected one."""
        return max(map(_missed, self.scores, self.positions))


def _missed(scores: Tensor, positions: Tensor) -> float:
    # The first rows see no key that they could leave out.
    first = positions.shape[1]
    rows, chosen = scores[first:], positions[first:].long()
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)[first:]
    left_out = rows.masked_fill(hidden, -torch.inf).scatter(-1, chosen, -torch.inf)
    better = left_out.amax(-1) - rows.gather(-1, chosen).amin(-1)
    return float(better.max() / scores.abs().max())
