"""The indexer of int8 at every instruction set: its plugin's tests of kernels, and splits."""

from __future__ import annotations

import pytest
from custom_pypto_lightning_indexer import comparison, reference, samples
from custom_pypto_plugin import SampleInput
from indexer_op import select_int8

import plugins.lightning_indexer.tests.test_quant as of_the_op
from conftest import Kernels, Op
from plugins.lightning_indexer.tests.test_quant import (  # noqa: F401
    extreme,
    test_a_key_does_not_see_the_signs_of_others,
    test_a_larger_scale_of_a_key_is_a_higher_score,
    test_a_query_token_does_not_see_the_signs_of_others,
    test_a_scale_of_zero_gives_zero,
    test_dtypes_of_weights_and_scales_do_not_matter,
    test_every_float8_number_is_taken_as_it_is,
    test_float8_with_gaps_between_elements,
    test_gaps_between_elements,
    test_infinite_scales_give_inf_or_nan,
    test_keys_and_scales_that_are_part_of_a_larger_cache,
    test_keys_with_nan_scales_come_last,
    test_random_paged_batches,
    test_results_have_the_same_bits_at_every_instruction_set,
    test_scales_may_be_float32,
    test_so_have_those_of_negative_scales,
    test_the_relu_is_of_the_dot_product_times_its_scales,
)


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch, quant_indexer: Op) -> None:
    """Let the plugin's tests call the emulated op."""
    monkeypatch.setattr(of_the_op, "op", quant_indexer)


SAMPLES = list(samples.quant_lightning_indexer("cpu"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_samples_of_the_op(quant_indexer: Op, sample: SampleInput) -> None:
    expected = reference.quant_lightning_indexer(*sample.args, **sample.kwargs)
    comparison.compare_quant(quant_indexer(*sample.args, **sample.kwargs), expected, sample)


def test_bits_do_not_depend_on_how_tokens_are_split(int8_kernels: Kernels) -> None:
    process = int8_kernels("lightning_indexer")
    sample = extreme(samples.Sizes([1500], 3, 64, depth=64, block_size=128), sparse_count=1500)
    whole = select_int8(process, *sample.args, **sample.kwargs)
    for split in (of_the_op.TOKEN_BLOCK, 5 * of_the_op.TOKEN_BLOCK):
        assert select_int8(process, *sample.args, **sample.kwargs, split=split).equal(whole)
