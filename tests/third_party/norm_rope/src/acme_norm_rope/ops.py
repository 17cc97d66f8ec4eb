"""Written by custom_pypto_build: the ops of the plugin 'acme_norm_rope' as functions, and its constants.

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

__all__ = ["norm_rope", "norm_rope_backward"]


@op_function("norm_rope")
def norm_rope(
    x: Tensor,
    weight: Tensor,
    *,
    cos: Tensor,
    sin: Tensor,
    eps: float = 1e-06,
) -> Tensor:
    """norm_rope(Tensor x, Tensor weight, *, Tensor cos, Tensor sin, float eps=1e-6) -> Tensor

    RMS norm of each head, then a rotation of its two halves by the angles of its token

    In PyTorch: (lambda y, c, s: torch.cat((y[..., : c.shape[-1]] * c - y[..., c.shape[-1] :] * s, y[..., c.shape[-1] :] * c + y[..., : c.shape[-1]] * s), -1).to(x.dtype))( x.double() * torch.rsqrt(x.double().square().mean(-1, True) + eps) * weight.double(), cos.double().unsqueeze(-2), sin.double().unsqueeze(-2))

    Arguments
      x       [*tokens, N, D], float16, bfloat16, float32 or float64
      weight  [D], dtype of x
      cos     [*tokens, D/2], float32 or float64
      sin     [*tokens, D/2], dtype of cos
      eps     float; default 1e-6; eps > 0

    Returns
      result  [*tokens, N, D], dtype of x

    Sizes
      N  the number of heads
      D  the size of a head
    """


@op_function("norm_rope_backward")
def norm_rope_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    *,
    cos: Tensor,
    sin: Tensor,
    eps: float = 1e-06,
) -> tuple[Tensor, Tensor]:
    """norm_rope_backward(Tensor grad, Tensor x, Tensor weight, *, Tensor cos, Tensor sin, float eps=1e-6) -> (Tensor, Tensor)

    the gradients of norm_rope by x and weight

    In PyTorch: tuple(each.to(x.dtype) for each in torch.autograd.functional.vjp(lambda x, weight: (lambda y, c, s: torch.cat(( y[..., : c.shape[-1]] * c - y[..., c.shape[-1] :] * s, y[..., c.shape[-1] :] * c + y[..., : c.shape[-1]] * s), -1))( x * torch.rsqrt(x.square().mean(-1, True) + eps) * weight, cos.double().unsqueeze(-2), sin.double().unsqueeze(-2)), (x.double(), weight.double()), grad.double())[1])

    Arguments
      grad    [*tokens, N, D], dtype of x
      x       [*tokens, N, D], float16, bfloat16, float32 or float64
      weight  [D], dtype of x
      cos     [*tokens, D/2], float32 or float64
      sin     [*tokens, D/2], dtype of cos
      eps     float; default 1e-6; eps > 0

    Returns
      grad_x       [*tokens, N, D], dtype of x
      grad_weight  [D], dtype of x

    Sizes
      N  the number of heads
      D  the size of a head
    """
