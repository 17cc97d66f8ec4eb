"""Arguments and results of kernels: every type of a schema, None, errors, calls of other ops."""

import gc
import resource
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from cpp_library import Library, registered

ops = torch.ops.custom_pypto


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    yield from registered(tmp_path_factory, "types")


TENSOR = torch.ones(2)
DEVICES = [torch.device("cpu"), torch.device("meta")]
# A call, and what the kernel of its op got.
ARRIVED: dict[str, tuple[Callable[[], str], str]] = {
    "values": (
        lambda: ops.headers_values(
            *(torch.ones(2, 3), -(2**62), 7, 0.5, True, "é"), dtype=torch.bfloat16, device="meta"
        ),
        f"float32[2, 3] {-(2**62)} 7 0.5 true é bfloat16 meta ",
    ),
    "optionals": (
        lambda: ops.headers_optionals(TENSOR, 3, 0.5, False, "s", torch.int8, DEVICES[0]),
        "float32[2] 3 0.5 false s int8 cpu ",
    ),
    "no optionals": (lambda: ops.headers_optionals(), "None " * 7),
    "lists": (
        lambda: ops.headers_lists(
            *([TENSOR, TENSOR.int()], [1, 2], [0.5, -1.0], [True, False], ["a", "é"]),
            *(DEVICES, [None, TENSOR], [3, None]),
        ),
        (
            "[float32[2], int32[2]] [1, 2] [0.5, -1] [true, false] [a, é] [cpu, meta]"
            " [None, float32[2]] [3, None] "
        ),
    ),
    "empty lists": (
        lambda: ops.headers_lists([TENSOR], [1, 2], [], [], [], [], [], []),
        "[float32[2]] [1, 2] [] [] [] [] [] [] ",
    ),
    "optional lists": (
        lambda: ops.headers_optional_lists([TENSOR], [1], [0.5], [True], ["s"]),
        "[float32[2]] [1] [0.5] [true] [s] ",
    ),
    "no optional lists": (lambda: ops.headers_optional_lists(), "None " * 5),
    "values of call_op": (
        lambda: ops.headers_call_ours(TENSOR, None),
        (
            "float32[2] 7 8 0.5 true lit float16 cpu None 5 None None s int32 None"
            " None [1, 2] [0.5] None None "
        ),
    ),
    "lists of call_op": (
        lambda: ops.headers_call_lists(TENSOR),
        "[float32[2], float32[2]] [1, 2] [0.5] [true, false] [s] [] [None, float32[2]] [] ",
    ),
}


@pytest.mark.parametrize(("call", "arrived"), ARRIVED.values(), ids=ARRIVED)
def test_arguments_reach_the_kernel(call: Callable[[], str], arrived: str) -> None:
    assert call() == arrived


def test_every_type_is_returned_and_none() -> None:
    t = torch.arange(3)
    out, pair, *plain, maybe, number, ints, reals, flags, texts = ops.headers_many(t, True)
    assert all(torch.equal(each, t) for each in (out, *pair, maybe))
    assert len(pair) == 2
    # A dtype comes back as torch numbers them.
    assert plain == [2**40, 0.5, True, "text", 5, torch.device("meta")]
    assert (number, ints, reals, flags, texts) == (5, [3, 4], [0.25], [True, False], ["a", ""])
    assert ops.headers_many(t, False)[8:10] == (None, None)


UNKNOWN = torch.float8_e8m0fnu  # not in the stable ABI of 2.10
LEAKS: dict[str, Callable[..., Any]] = {
    "a kernel throws": lambda a, b, c, d: ops.headers_refuse(a, [b, c], d),
    "one is unknown": lambda a, b, c, d: ops.headers_refuse_dtype(a, UNKNOWN, b, [c], d, "text"),
    "one is None": lambda a, b, c, d: ops.headers_refuse_dtype(a, torch.int8, None, [b, c], d, ""),
}


@pytest.mark.parametrize("call", LEAKS.values(), ids=LEAKS)
def test_a_call_that_fails_leaks_no_argument(call: Callable[..., Any]) -> None:
    """References to the arrays that its tensors have as memory are counted."""
    arrays = [np.ones(2, dtype=np.float32) for _ in range(4)]
    before = [sys.getrefcount(arrays[i]) for i in range(4)]
    a, b, c, d = map(torch.from_numpy, arrays)
    with pytest.raises(RuntimeError):
        call(a, b, c, d)
    assert [sys.getrefcount(arrays[i]) - before[i] for i in range(4)] == [1] * 4
    del a, b, c, d
    gc.collect()
    assert [sys.getrefcount(arrays[i]) - before[i] for i in range(4)] == [0] * 4


def test_strings_are_freed() -> None:
    text = "x" * 2**20
    ops.headers_strings(text, text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        assert ops.headers_strings(text, text) == 2 * len(text)
    # KiB; one leaked copy a call would be 200 MiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


REFUSED = "headers_refuse: argument 'x' hélas ✓"


def refuse_dtype(a: Any, b: Any) -> None:
    ops.headers_refuse_dtype(a, torch.float32, b, [], None, "")


NONE = "argument '{}' must be a tensor, got None"
# A call that fails, and the beginning of its error.
FAILURES: list[tuple[Callable[[], Any], str]] = [
    (lambda: ops.headers_refuse(TENSOR, [], None), REFUSED),
    (lambda: refuse_dtype(None, TENSOR), f"headers_refuse_dtype: {NONE.format('a')}"),
    (lambda: refuse_dtype(TENSOR, None), f"headers_refuse_dtype: {NONE.format('b')}"),
    (
        lambda: ops.headers_call_with_undefined(TENSOR),
        (
            "headers_call_with_undefined: custom_pypto::headers_lists: headers_lists: argument 't'"
            " must hold tensors only, got None at index 1"
        ),
    ),
    (
        lambda: ops.headers_call_overload(torch.ones(2, 3), torch.ones(2, 3)),
        "headers_call_overload: aten::mm.out: mat1 and mat2 shapes cannot be multiplied",
    ),
    (
        lambda: ops.headers_call_void(TENSOR, "custom_pypto::nowhere"),
        "headers_call_void: custom_pypto::nowhere: Could not find schema for",
    ),
]


@pytest.mark.parametrize(("call", "text"), FAILURES)
def test_a_failure_is_a_runtime_error_with_its_text(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call()
    assert type(caught.value) is RuntimeError
    assert str(caught.value).startswith(text)


def test_call_op_returns_a_tuple() -> None:
    values, indices = ops.headers_call_many(torch.tensor([3.0, 1.0, 2.0]), 2)
    assert (values.tolist(), indices.tolist()) == ([3.0, 2.0], [0, 2])
