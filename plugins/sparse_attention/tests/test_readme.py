"""The README's definitions are what the reference, and so the op, computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from custom_pypto_sparse_attention import comparison, reference, samples
from torch import Tensor

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """What the page's Python defines, after all of it ran."""
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    code = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    exec("\n".join(code), names)  # the page's own code, which is what is tested
    return names


def rounding(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda tensor: tensor.to(dtype).float()


def test_definition_of_the_mla_prolog(page: dict[str, Any]) -> None:
    arguments = samples.mla_arguments(samples.ODD)
    tokens = [
        a.flatten(0, 1).float() if i in (0, 7, 8) else a.float() for i, a in enumerate(arguments)
    ]
    defined = page["mla_prolog"](*tokens[:9], r=rounding(torch.bfloat16))
    expected = reference.mla_prolog(*arguments)
    for left, right in zip(defined[:3], expected, strict=True):
        comparison.assert_close(left.bfloat16(), right.flatten(0, 1))
    kept = arguments[10].flatten(0, 1)[arguments[9].flatten().long(), 0]
    comparison.assert_close(defined[3][-2:].bfloat16(), kept[-2:])


def test_definition_of_the_indexer_prolog(page: dict[str, Any]) -> None:
    arguments = samples.indexer_arguments(samples.ODD)
    flat = (0, 1, 7, 8)
    tokens = [a.flatten(0, 1).float() if i in flat else a.float() for i, a in enumerate(arguments)]
    defined = page["indexer_prolog"](*tokens[:9], r=rounding(torch.bfloat16))
    expected = reference.indexer_prolog(*arguments)
    for left, right in zip(defined[:2], expected, strict=True):
        comparison.assert_close(left.bfloat16(), right.flatten(0, 1))
