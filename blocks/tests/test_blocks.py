"""Caches of pages in C++: slots, layouts and dtypes that are refused."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cpp_library import Library, registered

ops = torch.ops.custom_pypto

ROWS = torch.arange(1.0, 13.0).view(3, 2, 2)


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    yield from registered(tmp_path_factory, "blocks", Path(__file__).parent / "cpp")


def strided_heads() -> torch.Tensor:
    """A cache [blocks, block_size, heads, D] that lies as [blocks, heads, block_size, D]."""
    return torch.zeros(2, 2, 4, 2).transpose(1, 2)


@pytest.mark.parametrize(
    ("heads", "slot", "text"),
    [
        (True, -2, "must hold slots from 0 to 7 (2 blocks of 4) or -1 for padding, got -2 for tok"),
        (True, 8, "must hold slots from 0 to 7 (2 blocks of 4) or -1 for padding, got 8 for token"),
        (False, -1, "must hold slots from 0 to 7 (2 blocks of 4), got -1 for token 1"),
    ],
)
def test_other_slots_are_refused(heads: bool, slot: int, text: str) -> None:
    cache = torch.zeros(2, 4, 2, 2)
    with pytest.raises(RuntimeError, match=re.escape(f"'slots' {text}")):
        ops.headers_paged_write(ROWS, cache, torch.tensor([0, slot, 1]), heads)
    assert not cache.any()


@pytest.mark.parametrize(
    ("heads", "cache", "text"),
    [
        (False, strided_heads(), "rows, but dimension 2 has stride 8 instead of 2"),
        (True, torch.zeros(2, 4, 2, 4)[..., ::2], "heads, but dimension 3 has stride 2 instead of"),
    ],
)
def test_rows_that_are_not_contiguous_are_refused(
    heads: bool, cache: torch.Tensor, text: str
) -> None:
    start = "headers_paged_write: argument 'cache' must have contiguous "
    with pytest.raises(RuntimeError, match=re.escape(start + text)):
        ops.headers_paged_write(ROWS, cache, torch.tensor([0, 1, 2]), heads)


def test_a_dtype_without_a_place_in_tables_is_refused() -> None:
    for rows, text in ((ROWS.double(), "no Element: float64"), (ROWS.char(), "must .* int8")):
        with pytest.raises(RuntimeError, match=f"'dtype' .*{text}"):
            ops.headers_paged_write(rows, strided_heads(), torch.tensor([0, 1, 2]), True)
