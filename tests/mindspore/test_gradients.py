"""Gradients of ops by MindSpore's own functions, compared with gradients of its own ops."""

from collections.abc import Callable
from typing import Any

import custom_pypto_mindspore as cp
import mindspore
import numpy as np
import pytest
from mindspore import Parameter, Tensor, nn, ops

Function = Callable[..., Any]


def with_op(x: Tensor, y: Tensor) -> Tensor:
    total = cp.ops.add_custom(x * x, y)
    return (total * cp.ops.add_custom(x, total)).sum()


def without(x: Tensor, y: Tensor) -> Tensor:
    total = x * x + y
    return (total * (x + total)).sum()


def again(function: Function) -> Function:
    """Make a scalar function of the gradients of `function`."""

    def weighted(x: Tensor, y: Tensor) -> Tensor:
        of_x, of_y = mindspore.grad(function, (0, 1))(x, y)
        return (of_x * x + of_y * y).sum()

    return weighted


def assert_equal(got: Any, wanted: Any) -> None:
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine.asnumpy(), theirs.asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_gradients_of_every_order_are_mindspores(order: int) -> None:
    random = np.random.default_rng(0)
    x, y = (Tensor(random.random((3, 5), np.float32)) for _ in range(2))
    functions = [with_op, without]
    for _ in range(order - 1):
        functions = [again(each) for each in functions]
    got, wanted = (mindspore.grad(each, (0, 1))(x, y) for each in functions)
    assert np.any(wanted[1].asnumpy() != 0)
    assert_equal(got, wanted)


class Scaled(nn.Cell):  # type: ignore[misc]
    """A layer with a parameter that an op and an operator take."""

    def __init__(self, add: Function) -> None:
        super().__init__()
        self.add = add
        self.weight = Parameter(Tensor(np.full(4, 2, np.float32)), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        return (self.add(self.weight * x, x) * self.weight).sum()


def test_a_cell_is_differentiated_by_inputs_and_parameters(vector: Tensor) -> None:
    found = []
    for add in (cp.ops.add_custom, lambda x, y: x + y):
        cell = Scaled(add)
        step = mindspore.value_and_grad(cell, 0, weights=cell.trainable_params())
        value, (of_x, (of_weight,)) = step(vector)
        found.append((value, of_x, of_weight))
    assert_equal(*found)


ONES = Tensor(np.ones(4, np.float32))
CACHE = Tensor(np.zeros(4, np.float32))


def written(x: Tensor, value: float) -> Tensor:
    """Write a value into a tensor, and return it."""
    cp.ops.fill_(x, value)
    return x


def square_slope(x: Tensor) -> Tensor:
    return mindspore.grad(lambda a: (cp.ops.square(a) * a).sum())(x)


GRADIENTS: dict[str, tuple[Function, list[float]]] = {
    "one of several results": (lambda x: cp.ops.add_custom_backward(x)[0] * x, [2, 4, 6, 8]),
    "constants": (lambda x: cp.ops.add_custom(ONES, ONES) * x, [2, 2, 2, 2]),
    "stopped": (lambda x: ops.stop_gradient(cp.ops.doubled_and_order(x * 1)[0]) * x, [2, 4, 6, 8]),
    "indices": (lambda x: cp.ops.doubled_and_order(x * 1)[1] * x, [0, 1, 2, 3]),
    "a cache that is written": (lambda x: written(CACHE, 3.0) * x, [3, 3, 3, 3]),
    "a formula that needs its input": (lambda x: cp.ops.square(x) * x, [3, 12, 27, 48]),
    "the same again": (square_slope, [6, 12, 18, 24]),
}


@pytest.fixture(autouse=True)
def _square_is_differentiable(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests declare this op, so the registry does not know its formula.
    monkeypatch.setattr(cp.ops.square, "_has_gradient", True)


@pytest.mark.parametrize("what", GRADIENTS)
def test_a_gradient_is(vector: Tensor, what: str) -> None:
    function, gradient = GRADIENTS[what]
    assert mindspore.grad(lambda x: function(x).sum())(vector).asnumpy().tolist() == gradient


def test_stop_gradient_lets_an_op_write_to_an_input(vector: Tensor) -> None:
    def filled(x: Tensor, cache: Tensor) -> Tensor:
        cp.ops.fill_(ops.stop_gradient(cache), 3.0)
        return (cache * x).sum()

    cache = Tensor(np.zeros(4, np.float32))
    assert mindspore.grad(filled)(vector, cache).asnumpy().tolist() == [3] * 4


def test_bfloat16_has_gradients(vector: Tensor) -> None:
    x = vector.astype(mindspore.bfloat16)
    _, pull = mindspore.vjp(lambda a: cp.ops.add_custom(a, a) * a, x)
    (grad,) = pull(x)
    assert grad.dtype == mindspore.bfloat16
    assert grad.astype(mindspore.float32).asnumpy().tolist() == [4, 16, 36, 64]


NO_GRADIENT = (
    "^{}: has no gradient; keep its results and what it writes to out of what is differentiated,"
    " by mindspore.ops.stop_gradient"
)
SPOILT = "modified by an inplace operation"


def write_a_factor(x: Tensor) -> Tensor:
    factor = Tensor(np.full(4, 3, np.float32))
    product = x * factor
    cp.ops.fill_(factor, 0.0)
    return product


def write_an_input_of_an_op(x: Tensor) -> Tensor:
    copy = x * 1
    square = cp.ops.square(copy)
    cp.ops.fill_(copy, 0.0)
    return square


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: cp.ops.doubled_and_order(x * 1)[0], NO_GRADIENT.format("doubled_and_order")),
        (lambda x: written(x * 2, 1.0) * x, NO_GRADIENT.format("fill_")),
        (write_a_factor, SPOILT),
        (write_an_input_of_an_op, SPOILT),
    ],
)
def test_what_has_no_gradient_is_an_error_not_zero(
    vector: Tensor, function: Function, message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        mindspore.grad(lambda x: function(x).sum())(vector)
