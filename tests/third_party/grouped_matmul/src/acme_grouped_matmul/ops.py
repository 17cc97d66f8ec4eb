"""Written by custom_pypto_build: the ops of the plugin 'acme_grouped_matmul' as functions, and its constants.

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

__all__ = ["grouped_matmul"]


@op_function("grouped_matmul")
def grouped_matmul(
    x: Sequence[Tensor],
    weight: Sequence[Tensor],
    bias: Sequence[Tensor] | None = None,
) -> list[Tensor]:
    """grouped_matmul(Tensor[] x, Tensor[] weight, Tensor[]? bias=None) -> Tensor[] y

    y[i] = x[i] @ weight[i] + bias[i], in float32

    In PyTorch: [(x[i].float() @ weight[i].float() + (0 if bias is None else bias[i].float())).to(x[i].dtype) for i in range(len(x))]

    Arguments
      x       E tensors; [M[i], K], float32 or bfloat16
      weight  E tensors; [K, N[i]], dtype of x
      bias    E tensors; [N[i]], dtype of x; or None

    Returns
      y  E tensors; [M[i], N[i]], dtype of x

    Sizes
      E  the number of experts
      K  the columns of every x and the rows of every weight
    """
