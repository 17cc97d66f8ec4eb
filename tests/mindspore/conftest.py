"""Ops for these tests only, and a tensor."""

from collections.abc import Iterator

import mindspore
import numpy as np
import pytest
import torch


def nested(
    xs: list[torch.Tensor],
    y: torch.Tensor | None = None,
    *,
    scale: float = 1.0,
    dtype: torch.dtype | None = None,
) -> tuple[list[torch.Tensor], int]:
    """Take and return every form of argument and result that a schema can have."""
    results = [x * scale + (0 if y is None else y) for x in xs]
    return [each.to(dtype) for each in results] if dtype else results, len(xs)


def fill_(x: torch.Tensor, value: float) -> None:
    x.fill_(value)


OPS = {
    "nested(Tensor[] xs, Tensor? y=None, *, float scale=1.0, ScalarType? dtype=None) -> (Tensor[], int)": nested,  # noqa: E501
    "address(Tensor x) -> int": torch.Tensor.data_ptr,
    "fill_(Tensor(a!) x, float value) -> ()": fill_,
    "doubled_and_order(Tensor x) -> (Tensor, Tensor)": lambda x: (x * 2, x.argsort()),
    "square(Tensor x) -> Tensor": lambda x: x * x,
}


@pytest.fixture(scope="session", autouse=True)
def probes() -> Iterator[None]:
    """Declare the ops in the namespace of the installed ones."""
    import custom_pypto.core  # noqa: F401

    library = torch.library.Library("custom_pypto", "FRAGMENT")
    for schema, function in OPS.items():
        library.define(schema)
        library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
    torch.library.register_autograd(
        "custom_pypto::square",
        lambda ctx, grad: 2 * ctx.saved_tensors[0] * grad,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        lib=library,
    )
    yield
    library._destroy()


@pytest.fixture
def vector() -> mindspore.Tensor:
    return mindspore.Tensor(np.arange(1, 5, dtype=np.float32))
