"""vLLM's rotary embedding on queries of any shape."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .names import RotaryEmbedding


class FlatRotary(nn.Module):
    """Gives vLLM's kernel queries [tokens, heads * size].

    Its kernel for CPUs takes [tokens, heads, size] too, but rotates the first tokens only.
    """

    def __init__(self, rotary: nn.Module) -> None:
        super().__init__()
        self.rotary = rotary

    def forward(self, positions: Tensor, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rotated query and key, in their shapes."""
        rotated, rotated_key = self.rotary(positions, query.flatten(1), key.flatten(1))
        return rotated.view(query.shape), rotated_key.view(key.shape)


def flat_rotary(rotary: Any) -> Any:
    """Wrap a rotary embedding that has that kernel; YaRN has none, and needs all dimensions."""
    return FlatRotary(rotary) if isinstance(rotary, RotaryEmbedding) else rotary
