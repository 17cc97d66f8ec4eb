"""Fixtures of the tests of sparse attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the ops)
import pytest
import torch

Op = Callable[..., Any]


@pytest.fixture
def fused() -> Op:
    return torch.ops.custom_pypto.npu_sparse_attention_pto


@pytest.fixture
def attention() -> Op:
    return torch.ops.custom_pypto.npu_sparse_flash_attention
