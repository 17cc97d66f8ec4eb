"""Arguments and results of kernels: every type of a schema, None, errors, calls of other ops."""

from __future__ import annotations

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


def test_plain_values_reach_the_kernel() -> None:
    shown = ops.headers_values(
        torch.ones(2, 3), -(2**62), 7, 0.5, True, "é", dtype=torch.bfloat16, device="meta"
    )
    assert shown == f"float32[2, 3] {-(2**62)} 7 0.5 true é bfloat16 meta "


def test_optionals_reach_the_kernel_with_values() -> None:
    shown = ops.headers_optionals(
        torch.ones(2), 3, 0.5, False, "s", torch.int8, torch.device("cpu")
    )
    assert shown == "float32[2] 3 0.5 false s int8 cpu "


def test_optionals_reach_the_kernel_without_values() -> None:
    assert ops.headers_optionals() == "None " * 7


def test_lists_reach_the_kernel() -> None:
    t = torch.ones(2)
    devices = [torch.device("cpu"), torch.device("meta")]
    shown = ops.headers_lists(
        [t, t.int()], [1, 2], [0.5, -1.0], [True, False], ["a", "é"], devices, [None, t], [3, None]
    )
    assert shown == (
        "[float32[2], int32[2]] [1, 2] [0.5, -1] [true, false] [a, é] [cpu, meta]"
        " [None, float32[2]] [3, None] "
    )


def test_empty_lists_reach_the_kernel() -> None:
    t = torch.ones(1)
    with pytest.raises(RuntimeError):  # nothing to dispatch on
        ops.headers_lists([], [1, 2], [], [], [], [], [], [])
    shown = ops.headers_lists([t], [1, 2], [], [], [], [], [], [])
    assert shown == "[float32[1]] [1, 2] [] [] [] [] [] [] "


def test_optional_lists_reach_the_kernel_with_values() -> None:
    shown = ops.headers_optional_lists([torch.ones(1)], [1], [0.5], [True], ["s"])
    assert shown == "[float32[1]] [1] [0.5] [true] [s] "


def test_optional_lists_reach_the_kernel_without_values() -> None:
    assert ops.headers_optional_lists() == "None " * 5


def test_every_type_is_returned() -> None:
    t = torch.arange(3)
    out, pair, *plain, maybe, number, ints, reals, flags, texts = ops.headers_many(t, True)
    assert all(torch.equal(each, t) for each in (out, *pair, maybe))
    assert len(pair) == 2
    # A dtype comes back as torch numbers them.
    assert plain == [2**40, 0.5, True, "text", 5, torch.device("meta")]
    assert (number, ints, reals, flags, texts) == (5, [3, 4], [0.25], [True, False], ["a", ""])


def test_none_is_returned() -> None:
    assert ops.headers_many(torch.arange(3), False)[8:10] == (None, None)


def references_left(call: Callable[..., Any]) -> list[int]:
    """References that a `call` that raises leaves on the memory of the four tensors it gets."""
    arrays = [np.ones(2, dtype=np.float32) for _ in range(4)]
    before = [sys.getrefcount(arrays[i]) for i in range(4)]
    a, b, c, d = map(torch.from_numpy, arrays)
    with pytest.raises(RuntimeError):
        call(a, b, c, d)
    held = [sys.getrefcount(arrays[i]) - before[i] for i in range(4)]
    assert held == [1] * 4
    del a, b, c, d
    gc.collect()
    return [sys.getrefcount(arrays[i]) - before[i] for i in range(4)]


def test_kernel_that_throws_leaks_no_argument() -> None:
    assert references_left(lambda a, b, c, d: ops.headers_refuse(a, [b, c], d)) == [0] * 4


def test_argument_that_cannot_be_converted_leaks_no_other() -> None:
    unknown = torch.float8_e8m0fnu  # not in the stable ABI of 2.10
    call = ops.headers_refuse_dtype
    assert references_left(lambda a, b, c, d: call(a, unknown, b, [c], d, "text")) == [0] * 4


def test_strings_are_freed() -> None:
    text = "x" * 2**20
    ops.headers_strings(text, text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        assert ops.headers_strings(text, text) == 2 * len(text)
    # KiB; one leaked copy a call would be 200 MiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024


REFUSED = "headers_refuse: argument 'x' hélas ✓"


def test_error_of_a_kernel_is_a_runtime_error_with_its_text() -> None:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_refuse(torch.ones(1), [], None)
    assert (type(caught.value), str(caught.value)) == (RuntimeError, REFUSED)


def test_error_of_a_kernel_keeps_its_text_in_a_compiled_function() -> None:
    torch._dynamo.reset()
    with torch.library._scoped_library("custom_pypto", "FRAGMENT") as lib:
        torch.library.register_fake(
            "custom_pypto::headers_refuse", lambda x, y, z: x.clone(), lib=lib
        )
        compiled = torch.compile(
            lambda x: ops.headers_refuse(x, [x], None) + 1, backend="aot_eager", fullgraph=True
        )
        with pytest.raises(RuntimeError) as caught:
            compiled(torch.ones(2))
    assert str(caught.value) == REFUSED


def test_none_for_a_tensor_is_refused_by_its_name() -> None:
    t = torch.ones(1)
    for a, b, name in ((None, t, "a"), (t, None, "b")):
        with pytest.raises(RuntimeError) as caught:
            ops.headers_refuse_dtype(a, torch.float32, b, [], None, "")
        assert str(caught.value) == (
            f"headers_refuse_dtype: argument '{name}' must be a tensor, got None"
        )


def test_none_for_a_tensor_is_refused_where_a_kernel_serves_every_device() -> None:
    with pytest.raises(RuntimeError, match=r"^headers_none: argument 'self' must be a tensor,"):
        ops.headers_none("text", None)


def test_undefined_tensor_in_a_list_is_refused_by_its_index() -> None:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_call_with_undefined(torch.ones(1))
    assert str(caught.value) == (
        "headers_call_with_undefined: custom_pypto::headers_lists: headers_lists: argument 't' must"
        " hold tensors only,"
        " got None at index 1"
    )


def test_refusal_of_none_leaks_no_other_argument() -> None:
    call = ops.headers_refuse_dtype
    assert references_left(lambda a, b, c, d: call(a, torch.int8, None, [b, c], d, "")) == [0] * 4


def test_call_op_returns_a_tuple() -> None:
    x = torch.tensor([3.0, 1.0, 2.0])
    values, indices = ops.headers_call_many(x, 2)
    assert (values.tolist(), indices.tolist()) == ([3.0, 2.0], [0, 2])


def test_call_op_takes_an_overload() -> None:
    a, b = torch.randn(3, 3, generator=torch.Generator().manual_seed(0)), torch.eye(3)
    assert torch.equal(ops.headers_call_overload(a, b), a)


def test_call_op_passes_values_strings_and_optionals() -> None:
    assert ops.headers_call_ours(torch.ones(2), None) == (
        "float32[2] 7 8 0.5 true lit float16 cpu None 5 None None s int32 None"
        " None [1, 2] [0.5] None None "
    )


def test_call_op_passes_lists() -> None:
    assert ops.headers_call_lists(torch.ones(2)) == (
        "[float32[2], float32[2]] [1, 2] [0.5] [true, false] [s] [] [None, float32[2]] [] "
    )


def test_call_op_gives_torchs_reason() -> None:
    with pytest.raises(RuntimeError) as caught:
        ops.headers_call_overload(torch.ones(2, 3), torch.ones(2, 3))
    assert str(caught.value).startswith(
        "headers_call_overload: aten::mm.out: mat1 and mat2 shapes cannot be multiplied"
    )


def test_call_op_of_a_missing_op_names_it() -> None:
    with pytest.raises(
        RuntimeError, match=r"^headers_call_void: custom_pypto::nowhere: Could not find schema for"
    ):
        ops.headers_call_void(torch.ones(1), "custom_pypto::nowhere")
