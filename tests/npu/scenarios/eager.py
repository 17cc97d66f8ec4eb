"""Ops called eagerly on NPU tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch_npu
from custom_pypto.core import contract
from custom_pypto.core.contracts import bind_arguments
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import comparison, samples
from custom_pypto_testing import checks
from custom_pypto_testing.checks.values import compare_mutated, compare_returned
from custom_pypto_testing.verification.op_checks import check_results

from scenarios.calls import count_phase_1, refusal, refusal_before_writing, to_device
from scenarios.fractal_nz import to_fractal_nz
from scenarios.samples import (
    case_named,
    cases_of,
    one_of_each_form,
    refused_cases,
    with_other_values,
)


def agrees_with_the_reference(name: str) -> int:
    """Every sample: results, caches, versions, aliasing, fake. Returns how many there are."""
    cases = cases_of(name)
    for case in cases:
        try:
            check_results(case)
        except Exception as error:
            raise AssertionError(f"{case.id}: {error}") from error
    return len(cases)


def passes_opcheck(name: str) -> int:
    """`torch.library.opcheck` on a sample of each form. Returns how many there are."""
    cases = one_of_each_form(cases_of(name))
    for case in cases:
        # CANN's gradients of these are of other calls than the samples: gradients_of_...
        is_other = name in ("npu_sparse_flash_attention", "npu_lightning_indexer")
        checks.check_operator(case, with_gradients=not is_other)
    return len(cases)


def agrees_with_the_cpu_bit_by_bit(name: str) -> int:
    """A simulated custom kernel computes with the CPU kernel, so nothing may differ."""
    cases = cases_of(name)
    for case in cases:
        on_npu = case.copy()
        on_cpu = on_npu.copy_to_cpu()
        torch.testing.assert_close(
            _on_cpu(on_npu.run()), on_cpu.run(), rtol=0, atol=0, equal_nan=True
        )
        for argument, cache in on_npu.mutable.items():
            assert cache.cpu().equal(on_cpu.mutable[argument]), (case.id, argument)
    return len(cases)


def launches_again(name: str) -> int:
    """Run every sample, then other values. Returns how often phase 1 ran for the latter."""
    counted = 0
    for case in cases_of(name):
        # Alive while the others are, so that no tensor is where one was before.
        call = case.copy()
        kept = [call, call.run()]
        torch_npu.npu.synchronize()
        other = with_other_values(case)
        checks.check_values(other)
        checks.check_mutated(other)
        _, runs = count_phase_1(other.copy().run)
        counted += runs
        kept.clear()
    return counted


def _on_cpu(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return value.cpu()
    assert isinstance(value, tuple)
    return tuple(each.cpu() for each in value)


def gradients_agree_with_the_cpu() -> None:
    """First and second derivatives of add_custom."""
    generator = torch.Generator().manual_seed(0)
    one, other, weight = torch.randn((3, 5, 7), generator=generator)
    results = []
    for device in ("cpu", "npu"):
        a, b = (t.to(device).requires_grad_() for t in (one, other))
        w = weight.to(device).requires_grad_()
        total = (torch.ops.custom_pypto.add_custom(a, b) * w).pow(3).sum()
        first = torch.autograd.grad(total, (a, b), create_graph=True)
        assert all(grad.device.type == device for grad in first)
        second = torch.autograd.grad(first[0].sum() + first[1].pow(2).sum(), (a, b, w))
        results.append([grad.detach().cpu() for grad in (*first, *second)])
    torch.testing.assert_close(results[1], results[0])


def gradients_of_attention_agree_with_the_cpu() -> None:
    """For the calls that CANN has gradients for: the samples of the gradient op."""
    for case in cases_of("npu_sparse_flash_attention_grad"):
        call = case.copy()
        given = bind_arguments(contract(case.name), call.args, call.kwargs)

        def backward(leaves: list[torch.Tensor], given: dict[str, Any]) -> None:
            out, _ = torch.ops.custom_pypto.npu_sparse_flash_attention(
                *leaves,
                given["sparse_indices"],
                scale=given["scale_value"],
                layout_kv=given["layout"],
                actual_seq_lengths_query=given["actual_seq_qlen"],
                actual_seq_lengths_kv=given["actual_seq_kvlen"],
            )
            out.backward(given["d_out"])

        _compare_gradients(("query", "query_rope", "key", "key_rope"), given, backward, 1e-3)


def gradients_of_the_indexer_agree_with_the_cpu() -> None:
    """As for attention. The values are summed: kernels may order equal ones differently."""
    for case in cases_of("npu_lightning_indexer_grad"):
        call = case.copy()
        given = bind_arguments(contract(case.name), call.args, call.kwargs)

        def backward(leaves: list[torch.Tensor], given: dict[str, Any]) -> None:
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

        _compare_gradients(("query", "key", "weights"), given, backward, 1e-2)


def _compare_gradients(
    names: Sequence[str],
    given: dict[str, Any],
    backward: Callable[[list[torch.Tensor], dict[str, Any]], None],
    atol: float,
) -> None:
    """Compare the gradients that `backward` leaves on an NPU and on the CPU."""
    results = []
    for device in ("cpu", "npu"):
        on_device = to_device(device, given)
        leaves = [on_device[name].detach().requires_grad_() for name in names]
        backward(leaves, on_device)
        results.append([leaf.grad for leaf in leaves])
    for name, cpu, npu in zip(names, *results, strict=True):
        assert cpu is not None
        assert npu is not None
        torch.testing.assert_close(npu.cpu(), cpu, rtol=0.02, atol=atol, msg=name)


def refuses(dtype: str) -> str:
    """The error of add_custom for a dtype that the NPU kernel does not take."""
    value = torch.ones(3, device="npu", dtype=getattr(torch, dtype))
    return refusal(torch.ops.custom_pypto.add_custom, value, value)


def refuses_what_its_kernels_do_not_take(name: str) -> dict[str, str]:
    """The errors for the samples that this machine's kernels do not take; no cache is written."""
    return {each.sample.name: refusal_before_writing(each.copy()) for each in refused_cases(name)}


def gives_the_log_sum_exp_of_paged_keys() -> None:
    given = _attention() | {"return_softmax_lse": True}
    expected = attention(**to_device("cpu", given))
    assert expected[1].numel() > 0
    torch.testing.assert_close(_on_cpu(attention(**given)), expected)


def attends_before_rows_of_padding() -> None:
    """The rows up to the last prefix sum; what follows is not defined."""
    given = _attention()
    end = len(given["query"]) - 2
    given["actual_seq_lengths_query"] = given["actual_seq_lengths_query"].clamp(max=end)
    (actual, _), (expected, _) = attention(**given), attention(**to_device("cpu", given))
    torch.testing.assert_close(actual[:end].cpu(), expected[:end])
    assert not expected[end:].any()


def _attention() -> dict[str, Any]:
    """A call of TND queries and paged keys that CANN's own kernel takes."""
    call = case_named("npu_sparse_flash_attention", "deepseek-tnd").copy()
    return bind_arguments(contract("npu_sparse_flash_attention"), call.args, call.kwargs)


def attention(**given: Any) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = torch.ops.custom_pypto.npu_sparse_flash_attention(**given)
    return out, lse


def attends_to_strided_caches() -> None:
    """Both caches in one buffer, as the op allows and CANN's own kernel does not."""
    call = case_named("npu_sparse_flash_attention", "deepseek-bsnd").copy()
    caches = {name: call.tensors[name] for name in ("kv_cache", "kr_cache")}
    sizes = [cache.size(-1) for cache in caches.values()]
    strided = torch.split(torch.cat([*caches.values()], -1), sizes, -1)
    assert not any(cache.is_contiguous() for cache in strided)
    actual, _ = call.replace(dict(zip(caches, strided, strict=True))).run()
    expected, _ = call.run()
    torch.testing.assert_close(actual.cpu(), expected.cpu(), rtol=0, atol=0)


def fills_strided_caches(sample: str) -> None:
    """All three caches of the fused op in one buffer, as the op allows and its kernels do not."""
    case = case_named("npu_sparse_attention_pto", sample)
    call = case.copy()
    sizes = [cache.size(-1) for cache in call.mutable.values()]
    strided = torch.split(torch.cat([*call.mutable.values()], -1), sizes, -1)
    assert not any(cache.is_contiguous() for cache in strided)
    returned = call.replace(dict(zip(call.mutable, strided, strict=True))).run()
    compare_returned(case, returned, case.expected.returned)
    compare_mutated(case, dict(zip(call.mutable, strided, strict=True)), case.expected.mutated)


def refuses_strided_caches(sample: str) -> str:
    """The error of the fused op for a sample with strided caches; none is written."""
    call = case_named("npu_sparse_attention_pto", sample).copy()
    strided = {name: torch.stack([cache] * 2, 1)[:, 0] for name, cache in call.mutable.items()}
    assert not any(cache.is_contiguous() for cache in strided.values())
    return refusal_before_writing(call.replace(strided))


def reads_strided_arguments(name: str, sample: str) -> list[str]:
    """With each argument that is only read, strided, the results are the same. Returns which."""
    case = case_named(name, sample)
    expected = case.copy()
    returned = _on_cpu(expected.run())
    read = [argument for argument in expected.tensors if argument not in expected.mutable]
    for argument in read:
        call = case.copy()
        strided = torch.stack([call.tensors[argument]] * 2, -1)[..., 0]
        assert not strided.is_contiguous()
        call = call.replace({argument: strided})
        try:
            torch.testing.assert_close(_on_cpu(call.run()), returned, rtol=0, atol=0)
            for cache, tensor in call.mutable.items():
                assert torch.equal(tensor, expected.mutable[cache]), cache
        except Exception as error:
            raise AssertionError(f"{argument}: {error}") from error
    return read


def attends_to_nothing(sample: str) -> None:
    """No index for any token, no key, and no token, also of sizes beyond the kernel's limits.

    Zeros, and sums of no exponentials.
    """
    call = case_named("npu_sparse_flash_attention", sample).copy()
    of_queries = ("query", "query_rope", "sparse_indices")
    empty = [
        {"sparse_indices": call.tensors["sparse_indices"][..., :0]},
        {name: call.tensors[name][:0] for name in ("kv_cache", "kr_cache")},
        {name: call.tensors[name][:, :0] for name in of_queries},
    ]
    for tensors in empty:
        out, log_sum_exp = call.replace(tensors).run()
        assert out.shape == tensors.get("query", call.tensors["query"]).shape
        assert not out.any()
        assert torch.isneginf(log_sum_exp).all()


def has_gradients_of_nothing(sample: str) -> None:
    """No index for any token, and no token: zeros, also of sizes beyond the kernel's limits."""
    call = case_named("npu_sparse_flash_attention_grad", sample).copy()
    of_queries = ("query", "query_rope", "d_out", "out", "sparse_indices")
    empty = [
        {"sparse_indices": call.tensors["sparse_indices"][..., :0]},
        {name: call.tensors[name][:, :0] for name in of_queries}
        | {name: call.tensors[name][:, :, :0] for name in ("softmax_max", "softmax_sum")},
    ]
    for tensors in empty:
        returned = call.replace(tensors).run()
        sizes = [call.tensors[name].shape[1:] for name in ("key", "value", "key_rope")]
        assert [returned[index].shape[1:] for index in (1, 2, 4)] == sizes
        assert not any(gradient.any() for gradient in returned)


def refuses_a_gradient_of_sums_over_rotated_parts_alone() -> str:
    """Without a latent part the gradient of the log-sum-exp is not zero. Returns the error."""
    call = case_named("npu_sparse_flash_attention_grad", "deepseek-bsnd-bfloat16").copy()
    latent = ("query", "key", "value", "d_out", "out")
    call = call.replace({name: call.tensors[name][..., :0] for name in latent})
    given = bind_arguments(contract(call.name), call.args, call.kwargs)
    op = torch.ops.custom_pypto.npu_sparse_flash_attention_grad
    assert not any(gradient.any() for gradient in op(**given))
    ones = torch.ones(given["query"].shape[:-1], dtype=torch.float32, device="npu")
    return refusal(op, **{**given, "d_lse": ones})


def has_gradients_of_no_scores(sample: str) -> None:
    """The indexer's, where no position is listed: zeros, also beyond the kernel's limits."""
    call = case_named("npu_lightning_indexer_grad", sample).copy()
    none = {name: call.tensors[name][..., :0] for name in ("dy", "sparse_indices")}
    gradients = call.replace(none).run()
    sizes = [call.tensors[name].shape for name in ("query", "key", "weights")]
    assert [gradient.shape for gradient in gradients] == sizes
    assert not any(gradient.any() for gradient in gradients)


def runs_the_mla_prolog_with_nz_weights(hidden: int) -> int:
    """Weights in the private format FRACTAL_NZ, for hidden states of this size.

    The other sizes are DeepSeek's. Returns how often phase 1 ran: once for one kernel.
    """
    sizes = replace(
        samples.DEEPSEEK, hidden=hidden, query_rank=1536, heads=2, nope=128, integers=torch.int64
    )
    on_cpu = list(samples.mla_arguments(sizes).values())
    on_npu = [tensor.to("npu") for tensor in on_cpu]
    for index in (1, 2, 4):
        on_npu[index] = to_fractal_nz(on_cpu[index])
    mla_prolog = torch.ops.custom_pypto.npu_mla_prolog
    returned, counted = count_phase_1(mla_prolog, *on_npu)
    expected = mla_prolog(*on_cpu)
    sample = SampleInput(tuple(on_cpu))
    comparison.compare(tuple(each.cpu() for each in returned), expected, sample)
    for index in (10, 11):
        torch.testing.assert_close(on_npu[index].cpu(), on_cpu[index])
    return counted
