"""The sizes that DeepSeek publishes for V3.2, in numbers, hold the samples that others take."""

import inspect
from typing import Any

import custom_pypto_lightning_indexer as indexer
import custom_pypto_lightning_indexer.samples as of_indexer
import custom_pypto_lightning_indexer_prolog.samples as of_prolog
import custom_pypto_sparse_attention.samples as of_attention
import pytest

SIZES: dict[str, tuple[Any, dict[str, int]]] = {
    "sparse_attention": (
        of_attention.DEEPSEEK_V32,
        {"hidden": 7168, "query_rank": 1536, "heads": 128, "nope": 128, "latent": 512, "rope": 64}
        | {"index_heads": 64, "index_size": 128, "block_size": 128},
    ),
    "lightning_indexer": (
        of_indexer.DEEPSEEK_V32,
        {"heads": 64, "key_heads": 1, "depth": 128, "block_size": 128},
    ),
    "lightning_indexer_prolog": (
        of_prolog.DEEPSEEK,
        {"hidden": 7168, "query_rank": 1536, "heads": 64, "size": 128, "rope": 64}
        | {"block_size": 128},
    ),
}


@pytest.mark.parametrize("plugin", SIZES)
def test_samples_have_the_published_sizes(plugin: str) -> None:
    samples, published = SIZES[plugin]
    assert {name: getattr(samples, name) for name in published} == published


def test_2048_tokens_are_selected() -> None:
    assert of_attention.TOP_K == 2048
    signature = inspect.signature(indexer.npu_lightning_indexer_pto)
    assert signature.parameters["sparse_count"].default == 2048
