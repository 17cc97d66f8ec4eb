"""What cannot be served ends in one sentence, in the processes of a user."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import sys
from vllm import LLM
if __name__ == "__main__":
    options = eval(sys.argv[2])
    LLM(sys.argv[1], enforce_eager=True, max_model_len=64, skip_tokenizer_init=True, **options)
"""


def error(model: Any, options: str = "{}", **environment: str) -> str:
    """Return what a process that starts an engine prints when it fails."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(model.folder), options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.parametrize("model", ["DeepseekV32"], indirect=True)
@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"VLLM_TARGET_DEVICE": "cpu"}, "needs our platform, but vLLM chose CpuPlatform"),
        ({"VLLM_PLUGINS": "another"}, "Sparse Attention is not supported on CPU."),
        ({"VLLM_MLA_DISABLE": "1"}, "unset VLLM_MLA_DISABLE"),
        ({"CUSTOM_PYPTO_DISABLE": "sparse_attention"}, "pip install custom-pypto-sparse-attention"),
    ],
)
def test_an_environment(model: Any, environment: dict[str, str], sentence: str) -> None:
    assert sentence in error(model, **environment)


@pytest.mark.parametrize("model", ["GlmMoeDsa"], indirect=True)
def test_an_option(model: Any) -> None:
    message = "custom_pypto_vllm: GlmMoeDsaForCausalLM: LoRA is not supported: remove --enable-lora"
    assert message in error(model, "{'enable_lora': True}")
