"""Fixtures of the tests of the prolog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import custom_pypto.core  # noqa: F401  (provides the op)
import pytest
import torch


@pytest.fixture
def prolog() -> Callable[..., Any]:
    return torch.ops.custom_pypto.npu_lightning_indexer_prolog_pto
