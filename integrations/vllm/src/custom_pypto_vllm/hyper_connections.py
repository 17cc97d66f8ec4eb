"""The streams of DeepSeek-V4 around attention and experts, on the ops; vLLM's kernels need AMX."""

from __future__ import annotations

import custom_pypto.core  # noqa: F401  loads the ops
import torch
from torch import Tensor, nn


class MhcPre(nn.Module):
    """Weighs the streams [tokens, n, H] into the input of a layer, with vLLM's arguments."""

    def forward(
        self,
        residual: Tensor,
        fn: Tensor,
        hc_scale: Tensor,
        hc_base: Tensor,
        rms_eps: float,
        hc_pre_eps: float,
        hc_sinkhorn_eps: float,
        hc_post_mult_value: float,
        sinkhorn_repeat: int,
        n_splits: int = 1,
        norm_weight: Tensor | None = None,
        norm_eps: float = 0.0,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what the layer's output is multiplied by, how the streams mix, and the input."""
        if hc_post_mult_value != 2 or norm_weight is not None:
            raise NotImplementedError(
                "custom_pypto_vllm: npu_mhc_pre multiplies by 2 and has no norm, and vLLM asks for"
                f" {hc_post_mult_value} and norm_weight={norm_weight is not None}"
            )
        ops = torch.ops.custom_pypto
        epsilons = {"norm_eps": rms_eps, "hc_eps": hc_pre_eps}
        inputs, post, mix, *_ = ops.npu_mhc_pre(residual, fn, hc_scale, hc_base, **epsilons)
        mixed, *_ = ops.npu_mhc_sinkhorn(mix, eps=hc_sinkhorn_eps, num_iters=sinkhorn_repeat)
        return post, mixed, inputs


class MhcPost(nn.Module):
    """Adds the output of a layer to the mixed streams."""

    def forward(self, x: Tensor, residual: Tensor, post: Tensor, mixed: Tensor) -> Tensor:
        """Return the streams [tokens, n, H]."""
        streams: Tensor = torch.ops.custom_pypto.npu_mhc_post(residual, mixed, x, post)
        return streams


class MhcHead(nn.Module):
    """Weighs the streams after the last layer; npu_mhc_pre without the parts that go back."""

    def forward(
        self, x: Tensor, fn: Tensor, scale: Tensor, base: Tensor, norm_eps: float, eps: float
    ) -> Tensor:
        """Return [tokens, H]."""
        flat = x.flatten(1).float()
        flat = flat * (flat.square().mean(-1, keepdim=True) + norm_eps).rsqrt()
        shares = ((flat @ fn.T) * scale + base).sigmoid() + eps
        return (shares.unsqueeze(-1) * x.float()).sum(1).to(x.dtype)
