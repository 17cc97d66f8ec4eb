"""Written by custom_pypto_build: the ops of the plugin 'acme_rms_norm' as functions, and its constants.

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

__all__ = ["rms_norm"]


@op_function("rms_norm")
def rms_norm(
    x: Tensor,
    gamma: Tensor,
    epsilon: float = 1e-06,
) -> tuple[Tensor, Tensor]:
    """rms_norm(Tensor x, Tensor gamma, float epsilon=1e-6) -> (Tensor y, Tensor rstd)

    x / sqrt(mean(x^2) + epsilon) * gamma over the last dim, and the reciprocal root

    In PyTorch: (lambda rstd: ((x.double() * rstd * gamma.double()).to(x.dtype), rstd.float()))( torch.rsqrt(x.double().square().mean(-1, True) + epsilon))

    Arguments
      x        [*rows, D], float16, bfloat16 or float32
      gamma    [D], dtype of x
      epsilon  float; default 1e-6; epsilon > 0

    Returns
      y     [*rows, D], dtype of x
      rstd  [*rows, 1], float32
    """
