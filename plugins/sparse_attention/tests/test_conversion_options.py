"""Options that a config gives to the conversion; test_convert_weights.py has transformers' own."""

from __future__ import annotations

from typing import Any

import pytest
from custom_pypto_sparse_attention import conversion_options

CONFIG: dict[str, Any] = {
    "model_type": "deepseek_v32",
    "num_attention_heads": 128,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
}
# As in a config.json of before transformers 5.
YARN = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}


def test_the_indexers_rope_is_the_models() -> None:
    assert conversion_options(CONFIG)["index_rope"] == "half_split"
    glm = {**CONFIG, "model_type": "glm_moe_dsa"}
    assert conversion_options(glm)["index_rope"] == "interleaved"


@pytest.mark.parametrize(
    "change", [{"mscale_all_dim": 0}, {"type": "default"}, {"factor": 1}], ids=str
)
def test_scale_is_plain_where_nothing_is_extended(change: dict[str, Any]) -> None:
    config = {**CONFIG, "rope_scaling": {**YARN, **change}}
    assert conversion_options(config)["scale"] == 192**-0.5


@pytest.mark.parametrize(
    ("config", "match"),
    [
        ({**CONFIG, "model_type": "llama"}, "model_type of 'deepseek_v32' or .*got 'llama'"),
        ({"model_type": "deepseek_v32"}, "has no qk_nope_head_dim"),
        ({**CONFIG, "rope_scaling": {**YARN, "factor": None}}, "but no factor"),
    ],
)
def test_bad_configs_are_refused(config: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=f"^conversion_options: argument 'config' .*{match}"):
        conversion_options(config)
