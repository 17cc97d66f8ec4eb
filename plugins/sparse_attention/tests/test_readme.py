"""The README's definitions are what the reference, and so the op, computes."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import comparison, reference, samples
from torch import Tensor

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names that the page's Python defines."""
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    code = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    exec("\n".join(code), names)  # the page's own code, which is what is tested
    return names


def call_page(
    page: dict[str, Any], name: str, given: dict[str, Tensor]
) -> tuple[Tensor, ...]:
    """The results of a function of the page that rounds to bf16, for tokens [T, ..]."""
    function = page[name]
    names = [each for each in inspect.signature(function).parameters if each != "r"]
    flat = {"x", "q_norm", "sin", "cos"}
    tensors = [given[each].flatten(0, 1) if each in flat else given[each] for each in names]
    results: tuple[Tensor, ...] = function(
        *(each.float() for each in tensors), r=lambda tensor: tensor.bfloat16().float()
    )
    return results


def test_definition_of_the_mla_prolog(page: dict[str, Any]) -> None:
    arguments = samples.mla_arguments(samples.ODD)
    *returned, latents, _ = call_page(page, "mla_prolog", arguments)
    expected = reference.mla_prolog(**arguments)
    for left, right in zip(returned, expected, strict=True):
        comparison.assert_close(left.bfloat16(), right.flatten(0, 1))
    kept = arguments["kv_cache"].flatten(0, 1)[arguments["cache_index"].flatten().long(), 0]
    comparison.assert_close(latents[-2:].bfloat16(), kept[-2:])


def test_definition_of_the_indexer_prolog(page: dict[str, Any]) -> None:
    arguments = samples.indexer_arguments(samples.ODD)
    expected = reference.indexer_prolog(**arguments)
    returned = call_page(page, "indexer_prolog", arguments)
    for left, right in zip(returned[:2], expected, strict=True):
        comparison.assert_close(left.bfloat16(), right.flatten(0, 1))
