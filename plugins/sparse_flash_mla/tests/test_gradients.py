"""The gradients of npu_sparse_flash_mla, held against autograd's of the reference."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from custom_pypto_sparse_flash_mla import reference, samples
from torch import Tensor

attention = torch.ops.custom_pypto.npu_sparse_flash_mla
NAMES = ("q", "ori_kv", "cmp_kv", "sinks")


def gradients(
    function: Callable[..., Any], arguments: dict[str, Any], dtype: torch.dtype | None = None
) -> list[Tensor]:
    given = {n: arguments[n].detach().to(dtype, copy=True) for n in NAMES if n in arguments}
    leaves = [each.requires_grad_() for each in given.values()]
    out = function(**arguments | given)[0]
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(3))
    return [*torch.autograd.grad((out * weights.to(out.dtype)).sum(), leaves)]


@pytest.mark.parametrize("layout", ["BSND", "TND"])
def test_gradients_of_pages(layout: str) -> None:
    arguments = samples.arguments(
        replace(samples.SMALL, dtype=torch.float32), "csa", layout, "PA_BBND"
    )
    arguments["ori_block_table"][1, 1:] = -1
    found = gradients(attention, arguments)
    arguments["ori_block_table"][1, 1:] = 0
    wanted = gradients(reference.sparse_flash_mla, arguments, torch.float64)
    for got, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=1e-4, atol=1e-5)
    # A cache of no blocks.
    empty = {"cmp_kv": arguments["cmp_kv"][:0], "cmp_sparse_indices": None}
    arguments |= {**empty, "seqused_cmp_kv": torch.zeros_like(arguments["seqused_cmp_kv"])}
    assert gradients(attention, arguments)[2].shape == arguments["cmp_kv"].shape
