"""Checkpoints, made once, and their references. vLLM must find its settings when it is imported."""

import os
from types import SimpleNamespace
from typing import Any

os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
os.environ["VLLM_LOGGING_LEVEL"] = "WARNING"

import pytest
from checkpoints import load_reference, make_checkpoint


@pytest.fixture(scope="session", params=["DeepseekV32", "GlmMoeDsa", "DeepseekV4"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a model of each family, with a dense layer and one of experts."""
    folder = tmp_path_factory.mktemp(request.param)
    make_checkpoint(folder, request.param)
    return SimpleNamespace(family=request.param, folder=folder, reference=load_reference(folder))
