"""replayed_call: the values of recorded calls."""

import json
from typing import Any

import pytest
import torch
from custom_pypto.core.call_record import MOST_INTEGERS, encode
from custom_pypto_testing.replayed_call import decode


def again(value: Any, *, with_tensors: bool) -> Any:
    tensors: list[torch.Tensor] | None = [] if with_tensors else None
    kept = json.loads(json.dumps(encode(value, tensors)))
    return decode(kept, tensors, torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 3, float("inf"), "text", [1, None], torch.float16, torch.device("cpu")),
        # Strides that overlap do not come back.
        torch.arange(5.0).unfold(0, 3, 1),
    ],
)
def test_values_come_back(value: Any) -> None:
    made = again(value, with_tensors=True)
    assert made.equal(value) if isinstance(value, torch.Tensor) else made == value


@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bool, torch.complex64])
@pytest.mark.parametrize("with_tensors", [True, False])
def test_tensors_come_back_with_their_strides(dtype: torch.dtype, with_tensors: bool) -> None:
    whole = (torch.arange(24) % 2).reshape(4, 6).to(dtype)
    views = whole, whole.t(), whole[:, ::2], whole[:, :1].expand(4, 7), whole[:0], whole[0, 0]
    for x in views:
        made = again(x, with_tensors=with_tensors)
        assert (made.shape, made.stride(), made.dtype) == (x.shape, x.stride(), dtype)
        # Integers are kept in any case.
        if with_tensors or dtype in (torch.int8, torch.bool):
            assert made.equal(x)


def test_many_integers_come_back_as_zeros() -> None:
    assert not again(torch.ones(MOST_INTEGERS + 1, dtype=torch.int64), with_tensors=False).any()
