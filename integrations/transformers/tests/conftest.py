"""What the tests of the integration share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import custom_pypto_transformers  # noqa: F401  (registers attn_implementation='custom_pypto')
import pytest
import torch
from custom_pypto_transformers import fallback

# Where the test files find tiny_models.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _every_fallback_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    # Warnings are errors: a test that does not want a fallback fails at it, whatever ran before.
    monkeypatch.setattr(fallback, "_warned_reasons", set())


@pytest.fixture
def no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield
