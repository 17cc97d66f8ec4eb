"""Fixtures of the integration's tests."""

from collections.abc import Iterator
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import fallback


@pytest.fixture(autouse=True)
def _every_fallback_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    # Warnings are errors: a test that does not want a fallback fails at it, whatever ran before.
    monkeypatch.setattr(fallback, "_warned_reasons", set())


@pytest.fixture
def no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="module", params=tiny_models.FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    return tiny_models.make_model(request.param)
