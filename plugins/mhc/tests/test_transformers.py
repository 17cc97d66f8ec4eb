"""The hyper-connections of DeepSeek-V4 in transformers: the ops give what its modules give."""

import pytest
import torch
from custom_pypto_mhc import npu_mhc_post, npu_mhc_pre, npu_mhc_sinkhorn


@pytest.mark.parametrize("n", [4, 6, 8])
def test_coefficients_and_streams_are_those_of_the_module(n: int) -> None:
    # Here, since environments that run other tests of this folder have no transformers.
    from transformers.models.deepseek_v4.configuration_deepseek_v4 import DeepseekV4Config
    from transformers.models.deepseek_v4.modeling_deepseek_v4 import DeepseekV4HyperConnection

    torch.manual_seed(n)
    config = DeepseekV4Config(hidden_size=256, hc_mult=n)
    module = DeepseekV4HyperConnection(config)
    for weight, spread in ((module.fn, 0.05), (module.base, 1.0), (module.scale, 1.0)):
        torch.nn.init.normal_(weight, std=spread)
    x, layer = torch.randn(2, 19, n, 256), torch.randn(2, 19, 256)
    with torch.no_grad():
        post, comb, collapsed = module(x)
        streams = post[..., None] * layer[:, :, None] + comb.mT @ x

        h_in, h_post, h_res, *_ = npu_mhc_pre(
            *(x, module.fn, module.scale, module.base),
            norm_eps=config.rms_norm_eps,
            hc_eps=config.hc_eps,
        )
        mixed, _, _ = npu_mhc_sinkhorn(h_res, eps=config.hc_eps, num_iters=config.hc_sinkhorn_iters)
        y = npu_mhc_post(x, mixed, layer, h_post)
    pairs = {"h_in": (h_in, collapsed), "h_post": (h_post, post), "h_res": (mixed, comb)}
    for name, (actual, expected) in {**pairs, "y": (y, streams)}.items():
        off = float((actual - expected).abs().max() / expected.abs().max())
        assert off < 2e-6, f"{name} is off by {off}"
