"""Sparse attention at every instruction set: the plugin's own tests of the kernel, and splits."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from attention_op import attend
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import comparison, reference, samples
from emulator import ELEMENTS

from conftest import Kernels
from plugins.sparse_attention.tests.test_attention import (  # noqa: F401
    DTYPES,
    SIZES,
    Op,
    test_a_negative_scale_prefers_the_opposite_keys,
    test_a_row_without_positions_is_zero,
    test_a_score_of_minus_infinity_excludes_a_key,
    test_any_number_of_heads,
    test_any_number_of_keys,
    test_any_size_of_head,
    test_causal_rows_do_not_see_later_tokens,
    test_large_scores_neither_overflow_nor_vanish,
    test_nan_in_a_selected_key_shows,
    test_no_indices_at_all,
    test_one_key_gives_its_value,
    test_rows_past_a_sequences_query_length_are_zero,
    test_skips_minus_one_wherever_it_stands,
)

# Keys without pages differ only in their addresses; fp64 kernels are the same everywhere.
SAMPLES = [
    sample
    for sample in samples.attention_samples("cpu")
    if "layout_kv" not in sample.kwargs and sample.args[0].dtype in ELEMENTS
]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_samples_of_the_op(attention: Op, sample: SampleInput) -> None:
    expected = reference.sparse_flash_attention(*sample.args, **sample.kwargs)
    comparison.compare(attention(*sample.args, **sample.kwargs), expected, sample)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_do_not_depend_on_how_heads_are_split(kernels: Kernels, dtype: torch.dtype) -> None:
    process = kernels("sparse_attention")
    arguments = samples.attention_arguments(replace(SIZES, dtype=dtype), count=90)
    # Whole panels of heads, as the op splits them, whatever its panel is.
    whole, split = (
        attend(process, **arguments, **options)[0] for options in ({}, {"heads_at_a_time": 16})
    )
    assert split.equal(whole)


@pytest.mark.parametrize("count", [20, 300, 2048])
@pytest.mark.parametrize("size", [0.05, 1.0, 30.0])
def test_outputs_near_zero_are_as_exact_as_others(attention: Op, size: float, count: int) -> None:
    """The plugin's test of that name, with fewer rows: an emulator is slow."""
    sizes = replace(SIZES, lengths=(2500,), tokens=1, heads=16, latent=256, rope=64)
    arguments = samples.attention_arguments(sizes, count=count)
    arguments["kv_cache"] *= size
    expected = reference.sparse_flash_attention(**arguments)
    comparison.assert_close(attention(**arguments)[0], expected[0])
