"""Fixtures of the integration's tests."""

from collections.abc import Iterator
from typing import Any

import pytest
import tiny_models
import torch
from custom_pypto_transformers import fallback
from fork_server import ForkServer

# The dear imports, and nothing of ours.
IMPORTS = """
import torch, transformers
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache
from transformers.models.deepseek_v32 import modeling_deepseek_v32
"""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Runs Python with transformers imported."""
    folder = tmp_path_factory.mktemp("server")
    started = ForkServer([], folder, options=("-W", "ignore"), imports=IMPORTS)
    yield started
    started.close()


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
