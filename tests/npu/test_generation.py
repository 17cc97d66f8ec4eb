"""Models of transformers on an NPU, by CANN's own kernels: a model calls no other ones."""

import pytest
from worker import Start


@pytest.mark.parametrize("family", ["deepseek_v32", "glm_moe_dsa"])
def test_a_model_generates_the_tokens_of_the_cpu(start: Start, family: str) -> None:
    start("stock").run("generation.generates_the_tokens_of_the_cpu", family)


def test_sizes_that_the_kernels_do_not_take_are_refused_in_their_words(start: Start) -> None:
    found = start("stock").run("generation.refusals_of_sizes")
    attention, latents, indexer, depth, *rows, window = found
    assert attention is None
    assert "argument 'kv_cache' must have rows of size 512, got 64" in latents
    assert indexer is None
    assert depth.startswith("npu_lightning_indexer_pto: argument 'query'")
    assert rows == [None] * 4
    assert "argument 'ori_win_left' must be 127 on an NPU, got 63" in window


def test_rows_have_the_attention_of_the_cpu(start: Start) -> None:
    start("stock").run("generation.rows_have_the_attention_of_the_cpu")
