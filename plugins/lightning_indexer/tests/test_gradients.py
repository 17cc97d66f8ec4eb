"""What is particular to the scores that npu_lightning_indexer returns, and to their gradients.

The conformance suite holds both against references, and differentiates the op numerically.
"""

import custom_pypto.core  # noqa: F401  (provides the ops)
import pytest
import torch
import torch.utils.checkpoint
from custom_pypto_lightning_indexer import samples
from refusals import assert_refused
from torch import Tensor

OP = "npu_lightning_indexer"
indexer = torch.ops.custom_pypto.npu_lightning_indexer


def tensors() -> list[Tensor]:
    sizes = samples.Sizes([45, 45], 7, 6, 1, 33, dtype=torch.float32)
    return [each.requires_grad_() for each in samples.trained("cpu", "", sizes).args]


def test_the_derivative_of_a_product_that_is_zero_is_zero() -> None:
    query, key, weights = torch.zeros(1, 1, 2, 4), torch.ones(1, 3, 1, 4), torch.ones(1, 1, 2)
    given = [each.requires_grad_() for each in (query, key, weights)]
    indexer(*given, sparse_count=3, return_value=True)[1].sum().backward()
    for each in given:
        assert each.grad is not None
        assert int(each.grad.count_nonzero()) == 0


def test_the_backward_refuses_a_position_that_is_no_key() -> None:
    given = dict(zip(("query", "key", "weights"), map(Tensor.detach, tensors()), strict=True))
    name, shape = "sparse_indices", (2, 7, 1, 3)
    given |= {"dy": torch.zeros(shape), name: torch.full(shape, 45)}
    text = "must hold -1 or positions below 45, the keys of the sequence, got"
    assert_refused(f"{OP}_grad", given, name, text, is_of_values=True)


def test_no_tokens_and_more_heads_than_bytes_can_be_counted() -> None:
    heads = 2**61
    query, weights = torch.empty(1).expand(2, 0, heads, 1), torch.empty(1).expand(2, 0, heads)
    key, dy = torch.empty(2, 0, 2, 1), torch.empty(2, 0, 2, 8)
    indices = torch.empty(2, 0, 2, 8, dtype=torch.int32)
    found = torch.ops.custom_pypto.npu_lightning_indexer_grad(query, key, dy, indices, weights)
    assert [each.shape for each in found] == [query.shape, key.shape, weights.shape]


def test_a_gradient_through_checkpoint_can_be_kept_in_the_graph() -> None:
    query, key, weights = tensors()

    def values(query: Tensor) -> Tensor:
        found = indexer(query, key, weights, return_value=True, sparse_count=6)[1]
        return found.masked_fill(found.isinf(), 0.0).sum()

    (plain,) = torch.autograd.grad(values(query), query)
    again = torch.utils.checkpoint.checkpoint(values, query, use_reentrant=False)
    (kept,) = torch.autograd.grad(again, query, create_graph=True)
    assert torch.equal(kept, plain)
    with pytest.raises(RuntimeError, match=r"^npu_lightning_indexer has no second derivative"):
        kept.sum().backward()
