"""Ops called eagerly on NPU tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from custom_pypto_testing.case import Case
from custom_pypto_testing.checks.on_device import with_other_values
from custom_pypto_testing.checks.values import compare_with_reference
from custom_pypto_testing.outputs import Run

from scenarios.calls import count_phase_1, refusal, refusal_before_writing, to_device
from scenarios.samples import beyond, case_named, cases_of


def launches_again(name: str) -> int:
    """Run every sample, then other values. Returns how often phase 1 ran for the latter."""
    counted = 0
    for case in cases_of(name):
        other = with_other_values(case)
        # Alive while the last one is, so that no tensor is where one was before.
        earlier = [case.copy(), other.copy()]
        kept = [call.run() for call in earlier]
        again = other.copy()
        returned, runs = count_phase_1(again.run)
        compare_with_reference(other, Run(returned, again.mutable))
        counted += runs
        kept.clear()
    return counted


def _attend(leaves: list[torch.Tensor], given: dict[str, Any]) -> None:
    out, _ = torch.ops.custom_pypto.npu_sparse_flash_attention(
        *leaves,
        given["sparse_indices"],
        scale=given["scale_value"],
        layout_kv=given["layout"],
        actual_seq_lengths_query=given["actual_seq_qlen"],
        actual_seq_lengths_kv=given["actual_seq_kvlen"],
    )
    out.backward(given["d_out"])


def _index(leaves: list[torch.Tensor], given: dict[str, Any]) -> None:
    """The values are summed: kernels may order equal ones differently."""
    indices, values = torch.ops.custom_pypto.npu_lightning_indexer(
        *leaves,
        actual_seq_lengths_query=given["actual_seq_lengths_query"],
        actual_seq_lengths_key=given["actual_seq_lengths_key"],
        layout_query=given["layout"],
        layout_key=given["layout"],
        sparse_count=given["sparse_indices"].shape[-1],
        sparse_mode=given["sparse_mode"],
        return_value=True,
    )
    values[indices >= 0].sum().backward()


Backward = Callable[[list[torch.Tensor], dict[str, Any]], None]
BACKWARD: dict[str, tuple[tuple[str, ...], Backward, float]] = {
    "npu_sparse_flash_attention_grad": (("query", "query_rope", "key", "key_rope"), _attend, 1e-3),
    "npu_lightning_indexer_grad": (("query", "key", "weights"), _index, 1e-2),
}
"""For an op of gradients: leaves, the call that gives them gradients, and the tolerance."""


def gradients_agree_with_the_cpu(name: str) -> None:
    """For the calls that CANN has gradients for: the samples of the gradient op."""
    names, backward, atol = BACKWARD[name]
    for case in cases_of(name):
        given, results = bind_arguments(contract(name), case.args, case.kwargs), []
        for device in ("cpu", "npu"):
            on_device = to_device(device, given)
            leaves = [on_device[each].detach().requires_grad_() for each in names]
            backward(leaves, on_device)
            results.append([leaf.grad for leaf in leaves])
        for each, cpu, npu in zip(names, *results, strict=True):
            assert cpu is not None
            assert npu is not None
            torch.testing.assert_close(npu.cpu(), cpu, rtol=0.02, atol=atol, msg=each)


def refuses_what_its_kernels_do_not_take(name: str) -> dict[str, str]:
    """The errors for the samples that this machine's kernels do not take; no cache is written."""
    return {each: refusal_before_writing(case_named(name, each).copy()) for each in beyond(name)}


def attends_before_rows_of_padding() -> None:
    """The rows up to the last prefix sum; what follows is not defined."""
    # TND queries and paged keys that CANN's own kernel takes.
    given = case_named("npu_sparse_flash_attention", "deepseek-tnd").copy().arguments
    end = len(given["query"]) - 2
    given["actual_seq_lengths_query"] = given["actual_seq_lengths_query"].clamp(max=end)
    attention = torch.ops.custom_pypto.npu_sparse_flash_attention
    (actual, _), (expected, _) = attention(**given), attention(**to_device("cpu", given))
    torch.testing.assert_close(actual[:end].cpu(), expected[:end])
    assert not expected[end:].any()


def refuses_strided_caches(sample: str) -> str:
    """The error of the fused op for a sample with strided caches; none is written."""
    call = case_named("npu_sparse_attention_pto", sample).copy()
    strided = {name: torch.stack([cache] * 2, 1)[:, 0] for name, cache in call.mutable.items()}
    assert not any(cache.is_contiguous() for cache in strided.values())
    return refusal_before_writing(call.replace(strided))


def _without_tokens(call: Case, axis: int, names: Sequence[str]) -> dict[str, torch.Tensor]:
    return {name: call.tensors[name].narrow(axis, 0, 0) for name in names}


def attends_to_nothing(sample: str) -> None:
    """No index for any token, no key, and no token, also of sizes beyond the kernel's limits.

    Zeros, and sums of no exponentials.
    """
    call = case_named("npu_sparse_flash_attention", sample).copy()
    for tensors in (
        _without_tokens(call, -1, ["sparse_indices"]),
        _without_tokens(call, 0, ["kv_cache", "kr_cache"]),
        _without_tokens(call, 1, ["query", "query_rope", "sparse_indices"]),
    ):
        out, log_sum_exp = call.replace(tensors).run()
        assert out.shape == tensors.get("query", call.tensors["query"]).shape
        assert not out.any()
        assert torch.isneginf(log_sum_exp).all()


NO_GRADIENTS = {
    "npu_sparse_flash_attention_grad": (
        [(-1, ("sparse_indices",))],
        [
            (1, ("query", "query_rope", "d_out", "out", "sparse_indices")),
            (2, ("softmax_max", "softmax_sum")),
        ],
    ),
    "npu_lightning_indexer_grad": ([(-1, ("dy", "sparse_indices"))],),
}
"""For each way in which an op of gradients gets nothing: axes, and tensors without elements."""


def has_gradients_of_nothing(name: str, sample: str) -> None:
    """No index for any token, and no token: zeros, also of sizes beyond the kernel's limits."""
    case = case_named(name, sample)
    for empty in NO_GRADIENTS[name]:
        call = case.copy()
        for axis, names in empty:
            call = call.replace(_without_tokens(call, axis, names))
        returned = call.run()
        assert len(returned) >= 3
        for given, gradient in zip(("query", "key"), returned, strict=False):
            assert gradient.shape[1:] == call.tensors[given].shape[1:]
        assert not any(gradient.any() for gradient in returned)


def refuses_a_gradient_of_sums_over_rotated_parts_alone() -> str:
    """Without a latent part the gradient of the log-sum-exp is not zero. Returns the error."""
    call = case_named("npu_sparse_flash_attention_grad", "deepseek-bsnd-bfloat16").copy()
    latent = ("query", "key", "value", "d_out", "out")
    call = call.replace({name: call.tensors[name][..., :0] for name in latent})
    given, op = call.arguments, torch.ops.custom_pypto.npu_sparse_flash_attention_grad
    assert not any(gradient.any() for gradient in op(**given))
    ones = torch.ones(given["query"].shape[:-1], dtype=torch.float32, device="npu")
    return refusal(op, **{**given, "d_lse": ones})
