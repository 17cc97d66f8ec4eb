"""add_custom_backward, and the gradients that rest on it."""

from __future__ import annotations

import custom_pypto.core  # noqa: F401
import pytest
import torch
from torch import Tensor
from torch.autograd import grad

add_custom = torch.ops.custom_pypto.add_custom
add_custom_backward = torch.ops.custom_pypto.add_custom_backward


def leaf(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def test_backward_returns_two_copies() -> None:
    given = torch.arange(6.0).view(2, 3)
    one, other = add_custom_backward(given)
    one.fill_(1)
    other.fill_(2)
    assert given.equal(torch.arange(6.0).view(2, 3))
    assert one.equal(torch.full((2, 3), 1.0))
    assert other.equal(torch.full((2, 3), 2.0))


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_gradients_of_the_arguments_are_separate_tensors(shape: tuple[int, ...]) -> None:
    one, other = leaf(*shape), leaf(*shape, seed=1)
    add_custom(one, other).backward(torch.ones(shape, dtype=torch.float64))
    assert one.grad is not None
    assert other.grad is not None
    one.grad.zero_()
    assert other.grad.equal(torch.ones(shape, dtype=torch.float64))


def test_gradient_of_one_argument_only() -> None:
    one, other = leaf(3), leaf(3).detach()
    add_custom(one, other).sum().backward()
    assert one.grad is not None
    assert one.grad.equal(torch.ones(3, dtype=torch.float64))
    assert other.grad is None


def test_gradient_of_the_same_tensor_twice() -> None:
    one = leaf(3)
    add_custom(one, one).sum().backward()
    assert one.grad is not None
    assert one.grad.equal(torch.full((3,), 2, dtype=torch.float64))


def test_gradients_through_strided_arguments() -> None:
    one, other = leaf(3, 4), leaf(1, 3, seed=1)
    assert torch.autograd.gradcheck(lambda a, b: add_custom(a.t(), b.expand(4, 3)), (one, other))
    assert torch.autograd.gradgradcheck(
        lambda a, b: add_custom(a.t(), b.expand(4, 3)) ** 2, (one, other)
    )


def test_third_derivative() -> None:
    x = leaf(4)
    y = (add_custom(x, x) ** 3).sum()  # 8 x^3
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    (third,) = grad(second.sum(), x)
    torch.testing.assert_close(third, torch.full_like(x, 48))


def test_backward_of_the_backward_op() -> None:
    given = leaf(3)
    one, other = add_custom_backward(given)
    (2 * one + 3 * other).sum().backward()
    assert given.grad is not None
    assert given.grad.equal(torch.full((3,), 5, dtype=torch.float64))


def test_gradients_when_compiled() -> None:
    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def loss(a: Tensor, b: Tensor) -> Tensor:
        result: Tensor = (add_custom(a, b) ** 2).sum()
        return result

    for size in (5, 9):
        one, other = leaf(size), leaf(size, seed=1)
        loss(one, other).backward()
        assert one.grad is not None
        torch.testing.assert_close(one.grad, 2 * (one + other).detach())
