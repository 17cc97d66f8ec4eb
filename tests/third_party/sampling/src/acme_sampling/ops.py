"""Written by custom_pypto_build: the ops of the plugin 'acme_sampling' as functions, and its constants.

The first call of one loads the installed plugins.
"""

# The signatures are all there is to the functions.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from custom_pypto_plugin import op_function

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["sample_tokens"]


@op_function("sample_tokens")
def sample_tokens(
    logits: Tensor,
    temperature: float = 1.0,
    top_p: float = 1.0,
) -> Tensor:
    """sample_tokens(Tensor logits, float temperature=1.0, float top_p=1.0) -> Tensor tokens

    a random token of each row by softmax(logits / temperature), of the likeliest whose sum reaches top_p

    In PyTorch: (lambda p, noise: (lambda likely, order: torch.where((likely.cumsum(-1) - likely < top_p) .gather(-1, order.argsort(-1)), p / noise, -1.0).argmax(-1))(*p.sort(stable=True, dim=-1, descending=True)))( torch.softmax(logits.double() / temperature, -1), torch.empty(logits.shape).exponential_().double())

    Arguments
      logits       [B, V], float32 or bfloat16
      temperature  float; default 1.0; temperature > 0
      top_p        float; default 1.0; top_p > 0; top_p <= 1

    Returns
      tokens  [B], int64
    """
