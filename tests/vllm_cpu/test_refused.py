"""What cannot be served ends in one sentence, in the processes of a user."""

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
        (
            {"CUSTOM_PYPTO_DISABLE": "sparse_attention"},
            "CUSTOM_PYPTO_DISABLE names it; take it out",
        ),
    ],
)
def test_an_environment(model: Any, environment: dict[str, str], sentence: str) -> None:
    assert sentence in error(model, **environment)


INT4 = """{"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
    "config_groups": {"all": {"targets": ["Linear"],
        "weights": {"num_bits": 4, "type": "int", "strategy": "channel", "symmetric": True}}}}"""


@pytest.mark.parametrize("model", ["GlmMoeDsa"], indirect=True)
def test_a_field_of_the_checkpoint(model: Any) -> None:
    """test_refusals.py has all of them, on a configuration that is not vLLM's own."""
    sentence = "quantised experts need integers in groups of a multiple of 32"
    options = f"{{'hf_overrides': {{'quantization_config': {INT4}}}}}"
    assert f"custom_pypto_vllm: GlmMoeDsaForCausalLM: {sentence}" in error(model, options)
