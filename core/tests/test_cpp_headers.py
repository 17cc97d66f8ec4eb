"""The headers of kernels: messages, dtypes, allocation, the parallel loop."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cpp_library import Library, registered
from custom_pypto_contract import dtypes
from custom_pypto_contract.dispatch_keys import BACKEND_KEYS, DISPATCH_KEYS

ops = torch.ops.custom_pypto


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    yield from registered(tmp_path_factory, "kernels")


def test_cpp_and_python_name_the_same_keys_of_kernels_that_use_memory() -> None:
    assert tuple(filter(ops.headers_is_backend_key, DISPATCH_KEYS)) == BACKEND_KEYS


E8M0 = torch.empty(2, 3, dtype=torch.float8_e8m0fnu)  # which the stable ABI lacks
# The check holds for an empty text.
FAILURES: list[tuple[str, torch.Tensor | None, str]] = [
    ("argument", torch.ones(2, 3), "argument 'self' odd: float32[2, 3] NTD true"),
    ("argument", E8M0, "argument 'self' odd: float8_e8m0fnu[2, 3] NTD true"),
    ("argument", None, "argument 'self' odd: None NTD true"),
    ("op", torch.ones(2, 3), "has no [2, 3]"),
    ("check", None, "argument 'text' must be empty, got NTD"),
    ("visit", torch.ones(1), "argument 'self' must be float16 or bfloat16, got float32"),
    # These name no op by themselves.
    ("memory", None, "there is not enough memory"),
    ("vector", None, "there is not enough memory"),
    (
        "function",
        torch.ones(1),
        (
            "custom_pypto::empty: argument 'sizes' [4, 4611686018427387904, 4] cannot be allocated:"
            " its strides do not fit 64 bits"
        ),
    ),
    (
        "torch",
        torch.ones(2, 3),
        "Dimension out of range (expected to be in range of [-2, 1], but got 7)",
    ),
]


@pytest.mark.parametrize(("case", "given", "text"), FAILURES)
def test_failure_names_op_and_argument_and_prints_its_parts(
    case: str, given: torch.Tensor | None, text: str
) -> None:
    assert case != "check" or ops.headers_fail(case, given, "") is None
    with pytest.raises(RuntimeError) as caught:
        ops.headers_fail(case, given, "NTD")
    assert str(caught.value) == f"headers_fail: {text}"


# No C++ type has the elements of the other one.
DTYPES = [getattr(torch, name) for name in dtypes.DTYPES if name != "float8_e4m3fn"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_visit_dtype_finds_the_type(dtype: torch.dtype) -> None:
    assert ops.headers_element_size(torch.ones(1, dtype=dtype)) == dtype.itemsize


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3, 4), (2, 0, 3), (1,) * 64])
def test_empty_is_like_torch_empty(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> None:
    with torch.inference_mode():
        assert ops.headers_make(shape, dtype, device).is_inference()
    made = ops.headers_make(shape, dtype, device)
    expected = torch.empty(shape, dtype=dtype, device=device)
    assert (made.shape, made.stride(), made.dtype, made.device, made.is_contiguous()) == (
        expected.shape,
        expected.stride(),
        dtype,
        expected.device,
        True,
    )


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ([2, -3], "[2, -3] cannot be allocated: "),
        ([3, 2**40, 2**40], "cannot be allocated: its strides do not fit 64 bits"),
        ([1] * 65, "must have at most 64 dimensions, got 65"),
    ],
)
def test_empty_that_cannot_be_allocated_says_why(sizes: list[int], text: str) -> None:
    with pytest.raises(RuntimeError, match=r"^headers_make: custom_pypto::empty: argument 'sizes'"):
        ops.headers_make(sizes, torch.float32, "cpu")
    with pytest.raises(RuntimeError, match=re.escape(text)):
        ops.headers_make(sizes, torch.float32, "cpu")


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="Linux without huge pages"
)
def test_large_results_ask_for_huge_pages() -> None:
    large = ops.headers_make([16, 2**20], torch.uint8, "cpu")
    assert "hg" in _flags_of_mapping(large.data_ptr() + large.numel() // 2)
    assert torch.equal(large.fill_(7), torch.full((16, 2**20), 7, dtype=torch.uint8))


def _flags_of_mapping(address: int) -> list[str]:
    """Return the kernel's flags of the mapping that holds an address of this process."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        bounds = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if bounds is not None:
            inside = int(bounds[1], 16) <= address < int(bounds[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    raise AssertionError(f"no mapping holds {address:#x}")


def test_empty_like_follows_the_tensor() -> None:
    same, rows, ints = ops.headers_make_like(torch.ones(3, 2, dtype=torch.bfloat16).t())
    assert (same.shape, same.stride(), same.dtype) == ((2, 3), (3, 1), torch.bfloat16)
    assert (rows.shape, rows.dtype) == ((6, 2), torch.bfloat16)
    assert (ints.shape, ints.dtype) == ((6, 2), torch.int32)


@pytest.fixture
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize("grain", [0, 1, 3, 1000])
@pytest.mark.parametrize("shape", [(1, 100), (100, 1), (7, 13), (0, 5)])
def test_nested_loops_visit_every_index_once(shape: tuple[int, int], grain: int) -> None:
    assert torch.equal(ops.headers_visits(*shape, grain), torch.ones(shape, dtype=torch.int32))


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize("at", [0, 31, 63])
def test_exception_in_a_loop_reaches_the_caller_with_its_type(at: int) -> None:
    with pytest.raises(IndexError, match=rf"^headers_throw_in_loop: row {at}$"):
        ops.headers_throw_in_loop(at)
    assert int(ops.headers_visits(8, 8, 1).sum()) == 64


@pytest.mark.usefixtures("_two_threads")
def test_num_threads_is_torchs() -> None:
    assert ops.headers_threads() == 2
