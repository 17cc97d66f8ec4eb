"""A model without sparse attention is served as without the wheel."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from checkpoints import prompts
from engine import engine, generate
from programs import run_python
from tiny_models import VOCABULARY

# It has our layer, which vLLM makes for all models with MLA, and our platform.
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "first_k_dense_replace": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    # vLLM has a kernel for these sizes only.
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "q_lora_rank": 40,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
    "initializer_range": 0.2,
    "pad_token_id": None,
}
WITHOUT = """
import json, sys
from pathlib import Path
import conftest
from checkpoints import prompts
from engine import engine, generate
with engine(Path(sys.argv[1]), dtype="bfloat16") as llm:
    from vllm.platforms import current_platform
    assert "Sparse" not in type(current_platform).__name__
    print(json.dumps(generate(llm, prompts(5, 40, 100))), file=sys.stderr)
"""


def test_a_dense_model_has_the_tokens_that_it_has_without_the_wheel(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.DeepseekV3Config(**SIZES)
    transformers.DeepseekV3ForCausalLM(config).save_pretrained(tmp_path)
    variables = {"VLLM_PLUGINS": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = run_python("-c", WITHOUT, tmp_path, env=variables)
    without = json.loads(next(each for each in done.stderr.splitlines() if each[:2] == "[["))
    # On CPUs with AMX, vLLM's own kernel of dense MLA has no float32.
    with engine(tmp_path, dtype="bfloat16") as llm:
        from vllm.platforms import current_platform

        assert "Sparse" in type(current_platform).__name__
        assert generate(llm, prompts(5, 40, 100)) == without
