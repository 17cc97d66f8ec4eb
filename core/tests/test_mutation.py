"""Ops that write to their arguments: version counters, and what may not be written to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import custom_pypto.core
import pytest
import torch
from cpp_constant import cpp_constant
from cpp_library import Library, registered

ops = torch.ops.custom_pypto

WITHOUT_ALLOCATION = cpp_constant(Path(custom_pypto.core.__file__).parent / "include", "kFew")


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    yield from registered(tmp_path_factory, "mutation")


def test_none_for_a_tensor_that_is_written_to_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"^headers_write: argument 'x' must be a tensor, got N"):
        ops.headers_write(None, torch.ones(1))


def test_written_arguments_get_a_new_version() -> None:
    x, read, maybe, one, two = (torch.ones(2) for _ in range(5))
    ops.headers_write(x, read, maybe=maybe, list=[one, two])
    assert [t._version for t in (x, read, maybe, one, two)] == [1, 0, 1, 1, 1]


def test_written_arguments_are_written() -> None:
    x, maybe = torch.ones(2), torch.ones(2)
    out = ops.headers_write(x, torch.full((2,), 3.0), maybe=maybe)
    assert [t.tolist() for t in (x, maybe, out)] == [[-1.0, -1.0], [-1.0, -1.0], [-3.0, -3.0]]


def test_written_view_bumps_its_base() -> None:
    base = torch.ones(4, 2)
    ops.headers_write(base[1], torch.ones(2))
    assert base._version == 1


def test_scalar_tensor_gets_a_new_version() -> None:
    x = torch.tensor(2.0)
    ops.headers_write(x, torch.tensor(1.0))
    assert (x._version, x.item()) == (1, -2.0)


def test_composite_kernel_is_left_to_the_ops_it_calls() -> None:
    x = torch.ones(2)
    ops.headers_write_composite(x)
    assert x._version == 0


def test_backward_refuses_a_saved_tensor_that_was_written() -> None:
    weight = torch.ones(2, requires_grad=True)
    cache = torch.full((2,), 3.0)
    loss = (weight * cache).sum()
    ops.headers_write(cache, torch.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()  # type: ignore[no-untyped-call]


def test_backward_after_a_write_to_something_else() -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = (weight * torch.full((2,), 3.0)).sum()
    ops.headers_write(torch.ones(2), torch.ones(2))
    loss.backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert weight.grad.tolist() == [3.0, 3.0]


ADVICE = " Call the op under torch.no_grad() or pass a detached tensor."


def test_leaf_that_requires_grad_is_refused_by_name() -> None:
    leaf = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(torch.ones(2), torch.ones(2), maybe=leaf)
    assert str(caught.value) == (
        "headers_write: argument 'maybe' is written in place, which torch refuses: a leaf Variable "
        "that requires grad is being used in an in-place operation." + ADVICE
    )


def test_result_that_requires_grad_is_refused_by_name() -> None:
    result = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(torch.ones(2), torch.ones(2), list=[torch.ones(2), result])
    assert str(caught.value) == (
        "headers_write: argument 'list' is written in place, but it requires grad and an op that "
        "writes to an argument has no gradient." + ADVICE
    )


def test_refused_write_has_written_nothing() -> None:
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        ops.headers_write(x, torch.ones(2), maybe=leaf)
    assert (x.tolist(), leaf.tolist()) == ([1.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize("derived", [False, True])
def test_tensor_that_requires_grad_may_be_written_without_grad_mode(derived: bool) -> None:
    x = torch.ones(2, requires_grad=True)
    x = x * 1 if derived else x
    with torch.no_grad():
        ops.headers_write(x, torch.ones(2))
    assert (x.tolist(), x._version, x.requires_grad) == ([-1.0, -1.0], 1, True)


def test_inference_mode_writes_tensors_of_both_kinds() -> None:
    normal = torch.ones(2)
    with torch.inference_mode():
        inference = torch.ones(2)
        ops.headers_write(normal, inference)
        ops.headers_write(inference, normal)
    assert (normal.tolist(), inference.tolist(), normal._version) == ([-1.0] * 2, [-1.0] * 2, 1)


def test_inference_tensor_is_refused_outside_inference_mode() -> None:
    with torch.inference_mode():
        inference = torch.ones(2)
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(inference, torch.ones(2))
    assert str(caught.value).startswith(
        "headers_write: argument 'x' is written in place, which torch refuses: Inplace update to "
        "inference tensor outside InferenceMode is not allowed"
    )
    assert ADVICE not in str(caught.value)


def test_kernel_that_throws_has_bumped_the_version() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=r"^headers_write_fails: on purpose$"):
        ops.headers_write_fails(x)
    assert x._version == 1


def test_bump_version_by_hand_keeps_the_strides() -> None:
    x = torch.ones(3, 2, 4).permute(2, 0, 1)
    ops.headers_write_by_hand(x)
    assert (x.shape, x.stride(), x._version) == ((4, 3, 2), (1, 8, 4), 1)
    assert x.equal(-torch.ones(4, 3, 2))


SHARED = (
    "is written in place, but all 3 of its dimension 0 are at the same memory (stride 0), as"
    " expand() makes them; pass a tensor with memory for each element, such as its contiguous()"
)


@pytest.mark.parametrize("argument", ["x", "maybe", "list"])
def test_elements_that_share_memory_are_refused_and_left_alone(argument: str) -> None:
    base = torch.ones(1, 2)
    shared = base.expand(3, 2)
    given: dict[str, Any] = {"x": torch.ones(2), "read": torch.ones(2)}
    given[argument] = [torch.ones(2), shared] if argument == "list" else shared
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(**given)
    assert str(caught.value) == f"headers_write: argument '{argument}' {SHARED}"
    assert (base.tolist(), base._version) == ([[1.0, 1.0]], 0)


@pytest.mark.parametrize("sizes", [(1, 2), (3, 0)], ids=str)
def test_stride_of_0_that_shares_no_element_may_be_written(sizes: tuple[int, int]) -> None:
    x = torch.ones(sizes).as_strided(sizes, (0, 1))
    ops.headers_write(x, torch.ones(sizes))
    assert x.tolist() == (-torch.ones(sizes)).tolist()


@pytest.mark.parametrize(
    "read",
    [torch.ones(3), torch.ones(3, requires_grad=True), torch.ones(1).expand(3)],
    ids=["plain", "requires grad", "shares elements"],
)
def test_argument_that_is_only_read_may_be_any(read: torch.Tensor) -> None:
    """The written arguments that are left out are left alone."""
    x = torch.ones(3)
    ops.headers_write(x, read)
    assert (x.tolist(), x._version) == ([-1.0, -1.0, -1.0], 1)


@pytest.mark.parametrize(
    ("given", "other", "argument"),
    [
        (lambda x: {"maybe": x}, "x", "maybe"),
        (lambda x: {"list": [x.view(2, 2)]}, "x", "list"),
        (lambda x: {"list": [torch.ones(2), x[:1]], "maybe": torch.ones(1)}, "x", "list"),
        (lambda x: {"maybe": torch.ones(1), "list": [x[1:], x[1:]]}, "list", "list"),
    ],
)
def test_two_written_arguments_at_one_place_are_refused(
    given: Callable[[torch.Tensor], dict[str, Any]], other: str, argument: str
) -> None:
    x = torch.ones(4)
    with pytest.raises(RuntimeError) as caught:
        ops.headers_write(x, torch.ones(4), **given(x))
    assert str(caught.value) == (
        f"headers_write: argument '{argument}' is written in place, but begins at the same memory"
        f" as argument '{other}', which is written too; pass a tensor of its own, such as a clone()"
    )
    assert x.tolist() == [1.0] * 4


def test_each_of_many_tensors_of_a_written_list_is_compared_with_the_last() -> None:
    for index in range(WITHOUT_ALLOCATION + 2):
        tensors = [torch.ones(2) for _ in range(WITHOUT_ALLOCATION + 2)]
        with pytest.raises(RuntimeError, match="'list' is written in place, but begins at the sa"):
            ops.headers_write(torch.ones(2), torch.ones(2), list=[*tensors, tensors[index]])
        ops.headers_write(torch.ones(2), torch.ones(2), list=tensors)


def test_written_arguments_may_be_parts_of_one_tensor_or_have_no_elements() -> None:
    x = torch.ones(4)
    ops.headers_write(x[:2], torch.ones(2), maybe=x[2:], list=[x[:0], x[:0]])
    assert x.tolist() == [-1.0] * 4


def fake_write(
    x: torch.Tensor,
    read: torch.Tensor,
    *,
    maybe: torch.Tensor | None = None,
    list: list[torch.Tensor] | None = None,  # noqa: A002
) -> torch.Tensor:
    return torch.empty_like(x)


def test_compiled_function_writes_what_the_op_writes() -> None:
    def step(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        y = x * 2
        first = ops.headers_write(y, x, maybe=cache)
        second = ops.headers_write(cache, y)
        result: torch.Tensor = first + second + y
        return result

    torch._dynamo.reset()
    x, cache = torch.arange(4.0), torch.arange(4.0) + 10
    expected_cache = cache.clone()
    expected = step(x, expected_cache)
    with torch.library._scoped_library("custom_pypto", "FRAGMENT") as lib:
        torch.library.register_fake("custom_pypto::headers_write", fake_write, lib=lib)
        result = torch.compile(step, backend="aot_eager", fullgraph=True)(x, cache)
    assert torch.equal(result, expected)
    assert torch.equal(cache, expected_cache)
    assert x._version == 0
