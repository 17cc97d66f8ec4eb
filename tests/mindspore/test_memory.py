"""The memory of tensors is shared, never copied; tensors that cannot be shared are refused."""

import gc
import resource
from collections.abc import Callable
from typing import Any

import custom_pypto_mindspore as cp
import mindspore
import numpy as np
import pytest
import torch
from custom_pypto_contract import dtypes
from custom_pypto_mindspore.memory import DTYPES, to_mindspore, to_torch
from mindspore import Parameter, Tensor, mint
from mindspore.common.initializer import initializer
from mindspore.utils import dlpack


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_is_shared_both_ways(name: str) -> None:
    dtype = getattr(torch, name)
    mine = Tensor(np.arange(3), mindspore.int64).astype(getattr(mindspore, name))
    shared = to_torch(mine, lambda: "mine")
    assert (shared.dtype, shared.data_ptr()) == (dtype, mine.data_ptr())
    theirs = torch.arange(3).to(dtype)
    back = to_mindspore(theirs, lambda: "theirs")
    assert (back.dtype, back.data_ptr()) == (mine.dtype, theirs.data_ptr())
    assert torch.equal(to_torch(back, lambda: "back"), theirs)


@pytest.mark.parametrize("name", dtypes.DTYPES)
def test_a_dtype_of_contracts_is_listed_if_mindspore_takes_it(name: str) -> None:
    tensor = torch.zeros(3, dtype=torch.uint8).to(getattr(torch, name))
    try:
        dlpack.from_dlpack(tensor.__dlpack__())
    except (BufferError, RuntimeError, TypeError):
        assert name not in DTYPES
    else:
        assert name in DTYPES


def test_the_op_reads_where_mindspore_wrote(vector: Tensor) -> None:
    assert cp.ops.address(vector) == vector.data_ptr()
    assert cp.ops.address(vector[1:]) == vector.data_ptr() + 4


def test_mindspore_reads_where_the_op_wrote(
    vector: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    results: list[int] = []

    def watched(tensor: torch.Tensor, what: Callable[[], str]) -> Tensor:
        results.append(tensor.data_ptr())
        return to_mindspore(tensor, what)

    monkeypatch.setattr("custom_pypto_mindspore.gradient.to_mindspore", watched)
    assert cp.ops.add_custom(vector, vector).data_ptr() == results[0]


@pytest.mark.parametrize(
    ("view", "wanted"),
    [
        (lambda base: base, [[5, 5], [5, 5], [5, 5]]),
        (lambda base: base[1], [[0, 0], [5, 5], [0, 0]]),
        (lambda base: base[:, 1], [[0, 5], [0, 5], [0, 5]]),
        (lambda base: base.T[0], [[5, 0], [5, 0], [5, 0]]),
    ],
    ids=["itself", "row", "column", "transposed"],
)
def test_an_op_writes_to_the_tensor_and_through_a_view_to_its_base(
    view: Callable[[Tensor], Tensor], wanted: list[list[int]]
) -> None:
    base = Tensor(np.zeros((3, 2), np.float32))
    before = base + 1
    assert cp.ops.fill_(view(base), 5.0) is None
    assert (base + 1).asnumpy().tolist() == [[each + 1 for each in row] for row in wanted]
    assert (before == 1).all()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3)], ids=str)
def test_a_tensor_without_dims_or_elements(shape: tuple[int, ...]) -> None:
    tensor = Tensor(np.ones(shape, np.float32)) * 1
    result = cp.ops.add_custom(tensor, tensor)
    assert result.shape == shape
    assert (result + 1).asnumpy().tolist() == np.full(shape, 3.0).tolist()


def test_a_parameter_is_read_and_written(vector: Tensor) -> None:
    parameter = Parameter(initializer("ones", [4], mindspore.float32), name="p")
    assert cp.ops.add_custom(parameter, vector).asnumpy().tolist() == [2, 3, 4, 5]
    cp.ops.fill_(parameter, 7.0)
    assert parameter.asnumpy().tolist() == [7] * 4


SHARED = (
    "whose memory MindSpore cannot share by DLPack; it can share bfloat16, float16, float32,"
    " float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64"
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: cp.ops.add_custom(x, x > 2), "add_custom: argument 'other' is of dtype bool"),
        (lambda x: cp.ops.nested([x, x], y=x > 2), "nested: argument 'y' is of dtype bool"),
        (lambda x: cp.ops.nested(xs=[x, x > 2]), "nested: argument 'xs' is of dtype bool"),
        (
            lambda x: cp.ops.nested([x], dtype=mindspore.complex64),
            "nested: a result is of dtype complex64",
        ),
    ],
    ids=["argument", "keyword", "in a list", "result"],
)
def test_a_dtype_that_cannot_be_shared_is_refused_not_copied(
    vector: Tensor, call: Callable[[Tensor], Any], message: str
) -> None:
    with pytest.raises(TypeError, match=f"^{message}, {SHARED}$"):
        call(vector)


def test_another_device_target_is_refused(vector: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mindspore, "get_context", lambda _: "Ascend")
    message = "^add_custom: runs on MindSpore's CPU backend so far, got the device target Ascend"
    with pytest.raises(NotImplementedError, match=message):
        cp.ops.add_custom(vector, vector)


def test_an_op_waits_for_pending_computations() -> None:
    """MindSpore's ops return before they have run."""
    size = 1200
    matrix = Tensor(np.eye(size, dtype=np.float32) * 2)
    early = Tensor(np.zeros((size, size), np.float32))
    for _ in range(3):
        late = matrix
        for _ in range(4):
            late = mint.matmul(late, matrix)
        # In place, so that the memory is there before the values are.
        early.copy_(late)
        total = cp.ops.add_custom(early, early)
        assert total.asnumpy()[0, 0] == 64
        cp.ops.fill_(early, 0.0)


def test_an_op_overwrites_nothing_that_is_still_read() -> None:
    for _ in range(3):
        matrix = Tensor(np.eye(1200, dtype=np.float32))
        read = mint.matmul(mint.matmul(matrix, matrix), matrix)
        cp.ops.fill_(matrix, 0.0)
        assert read.asnumpy()[0, 0] == 1


def test_a_result_outlives_everything_it_was_made_of() -> None:
    def make() -> Tensor:
        large = Tensor(np.full((512, 512), 3, np.float32))
        return cp.ops.add_custom(large, large)

    results = [make() for _ in range(8)]
    gc.collect()
    others = [torch.zeros(512, 512) for _ in range(16)]
    assert all((each.asnumpy() == 6).all() for each in results)
    assert len(others) == 16


MEGABYTES = 8
CALLS = 48
"""So many that memory that MindSpore frees late, or its allocator keeps, is little beside them."""


def differentiated(x: Tensor) -> Tensor:
    return (cp.ops.add_custom(x, x) * x).sum()


def refused(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="must have the shape"):
        cp.ops.add_custom(x, x[:1])


@pytest.mark.parametrize(
    "call",
    [lambda x: cp.ops.add_custom(x, x), mindspore.grad(differentiated), refused],
    ids=["call", "gradient", "error"],
)
def test_memory_is_given_back(call: Callable[[Tensor], Any]) -> None:
    tensor = Tensor(np.ones((MEGABYTES, 1024, 256), np.float32))

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    for _ in range(3):
        call(tensor)
    before = peak()
    for _ in range(CALLS):
        call(tensor)
    # If each call kept a result, the peak would rise by twice this.
    assert peak() - before < CALLS * MEGABYTES // 2
