"""The derivatives of the three ops: what their backward keeps, and the `_backward` op it calls."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def _keep_pre(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
) -> None:
    gamma = keyword_only_inputs["gamma"]
    ctx.options = {name: each for name, each in keyword_only_inputs.items() if name != "gamma"}
    ctx.save_for_backward(*inputs, gamma, *output[1:2], *output[3:])
    ctx.mark_non_differentiable(*output[3:])


def _differentiate_pre(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
    *inputs, gamma, h_post, inv_rms, h_mix, h_pre = ctx.saved_tensors
    x, phi, alpha, _ = inputs
    ops = torch.ops.custom_pypto
    if ctx.options["out_flag"] == 0:
        options = {**ctx.options, "gamma": gamma, "out_flag": 1}
        _, _, _, inv_rms, h_mix, h_pre = ops.npu_mhc_pre(*inputs, **options)
    *found, grad_gamma = ops.npu_mhc_pre_backward(
        *(x, phi, alpha, *grads[:3], inv_rms, h_mix, h_pre, h_post, gamma, ctx.options["hc_eps"])
    )
    return (*found, None if gamma is None else grad_gamma)


def _keep_sinkhorn(
    ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any
) -> None:
    ctx.options = keyword_only_inputs
    ctx.save_for_backward(*inputs, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _differentiate_sinkhorn(ctx: Any, grad_y: Tensor, *_: Tensor) -> Tensor:
    x, norm, total = ctx.saved_tensors
    ops = torch.ops.custom_pypto
    if ctx.options["out_flag"] == 0:
        _, norm, total = ops.npu_mhc_sinkhorn(x, **{**ctx.options, "out_flag": 1})
    grad: Tensor = ops.npu_mhc_sinkhorn_backward(grad_y, norm, total)
    return grad


def _keep_post(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _differentiate_post(ctx: Any, grad_y: Tensor) -> tuple[Tensor | None, ...]:
    grads = torch.ops.custom_pypto.npu_mhc_post_backward(grad_y, *ctx.saved_tensors)
    grad_x, grad_h_res, grad_h_out, grad_h_post = grads
    return grad_x, None if ctx.saved_tensors[1] is None else grad_h_res, grad_h_out, grad_h_post


OF_OPS: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
    "npu_mhc_pre": (_keep_pre, _differentiate_pre),
    "npu_mhc_sinkhorn": (_keep_sinkhorn, _differentiate_sinkhorn),
    "npu_mhc_post": (_keep_post, _differentiate_post),
}
"""What keeps the tensors of a call, and what returns its gradients, by op."""
