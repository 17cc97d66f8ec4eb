"""The weights of the fused op and of the prologs, in each form that ops take, on NPUs."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import custom_pypto_sparse_attention as plugin
import torch
import torch_npu
from custom_pypto_lightning_indexer_prolog import projection_comparison
from custom_pypto_lightning_indexer_prolog import samples as samples_of_indexer
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import attention_comparison, samples
from custom_pypto_sparse_attention.weight_order import declared_for_a_test

from scenarios.calls import count_phase_1, to_device
from scenarios.graph import compiled, types_in

CACHES = (10, 11, 19)
WEIGHTS = (1, 2, 4, 14, 15, 16)

NZ = 29

Arguments = list[torch.Tensor]

_fused = torch.ops.custom_pypto.npu_sparse_attention_pto


def to_fractal_nz(matrix: torch.Tensor) -> torch.Tensor:
    """The matrix on an NPU, in FRACTAL_NZ, cast as torch_npu does it."""
    torch_npu.npu.config.allow_internal_format = True
    try:
        cast: torch.Tensor = torch_npu.npu_format_cast(matrix.to("npu"), NZ)
    finally:
        torch_npu.npu.config.allow_internal_format = False
    assert torch_npu.get_npu_format(cast) == NZ
    return cast


def _run_in_nz(
    op: Any, on_cpu: Mapping[str, Any], weights: Sequence[str]
) -> tuple[tuple[torch.Tensor, ...], dict[str, Any], int]:
    """Run an op with these weights in FRACTAL_NZ.

    Returns its results, its arguments, and how often phase 1 ran.
    """
    in_nz = {name: to_fractal_nz(on_cpu[name]) for name in weights}
    on_npu = {**to_device("npu", dict(on_cpu)), **in_nz}
    returned, counted = count_phase_1(op, **on_npu)
    return tuple(each.cpu() for each in returned), on_npu, counted


def mla_prolog_agrees(hidden: int) -> int:
    """For hidden states of this size; the others are DeepSeek's. Returns how often phase 1 ran."""
    published = samples.DEEPSEEK_V32
    sizes = replace(
        samples.DEEPSEEK,
        hidden=hidden,
        query_rank=published.query_rank,
        heads=2,
        nope=published.nope,
        integers=torch.int64,
    )
    on_cpu = samples.mla_arguments(sizes)
    op = torch.ops.custom_pypto.npu_mla_prolog
    returned, on_npu, counted = _run_in_nz(op, on_cpu, ("w_dq", "w_uq_qr", "w_dkv_kr"))
    attention_comparison.compare(returned, op(**on_cpu), SampleInput((), on_cpu))
    for cache in ("kv_cache", "kr_cache"):
        torch.testing.assert_close(on_npu[cache].cpu(), on_cpu[cache])
    return counted


def indexer_prolog_agrees(size: str) -> int:
    """A sample of the quantised prolog. Returns how often phase 1 ran."""
    on_cpu = samples_of_indexer.arguments(samples_of_indexer.CASES[size])
    op = torch.ops.custom_pypto.npu_lightning_indexer_prolog_pto
    returned, on_npu, counted = _run_in_nz(op, on_cpu, ("wq_b", "wk", "weights_proj"))
    sample = SampleInput((), on_cpu)
    projection_comparison.compare(returned, op(**on_cpu), sample)
    caches = {name: on_npu[name].cpu() for name in ("idx_k_cache", "idx_k_scale_cache")}
    projection_comparison.compare_caches(caches, on_cpu, sample)
    return counted


def _sample() -> Arguments:
    """Sizes that every kernel takes, and NZ order can hold."""
    return list(samples.fused_arguments(samples.FRACTAL_SIZES).values())


def _convert(form: str, weight: torch.Tensor) -> torch.Tensor:
    if form == "3-D":
        return plugin.to_nz(weight).to("npu")
    if form.startswith("private"):
        return to_fractal_nz(weight)
    if form == "declared":
        return plugin.to_nz(weight).view(weight.shape).to("npu")
    return weight.to("npu")


def _on_npu(form: str, arguments: Arguments) -> Arguments:
    formed = list(WEIGHTS)
    if form.startswith("private") and os.environ["KERNELS"] == "stock":
        # The pieces cast w_idx_k, for which the simulator knows no private format.
        formed.remove(15)
    rest = "declared" if form.endswith("declared") else "plain"
    return [
        _convert(form if index in formed else rest, each) if index in WEIGHTS else each.to("npu")
        for index, each in enumerate(arguments)
    ]


def _compare(returned: torch.Tensor, on_npu: Arguments) -> None:
    on_cpu = _sample()
    with declared_for_a_test(False):
        expected = _fused(*on_cpu)
    attention_comparison.compare_fused(returned.cpu(), expected, SampleInput(tuple(_sample())))
    for cache in CACHES:
        attention_comparison.assert_close(on_npu[cache].cpu(), on_cpu[cache], f"argument {cache}")


def agrees(form: str) -> int:
    """Weights in a form, eagerly. Returns how often phase 1 ran."""
    on_npu = _on_npu(form, _sample())
    with declared_for_a_test(form.endswith("declared")):
        returned, counted = count_phase_1(_fused, *on_npu)
    _compare(returned, on_npu)
    return counted


def graph_agrees(form: str, dynamic: bool) -> list[str]:
    """Weights in a form, in a graph of torchair's. Returns the types of its nodes."""
    on_npu = _on_npu(form, _sample())
    with tempfile.TemporaryDirectory() as folder, declared_for_a_test(form.endswith("declared")):
        _compare(compiled(_fused, folder, dynamic=dynamic)(*on_npu), on_npu)
        return [*types_in(folder)]


def graph_keeps_its_declaration() -> None:
    """A graph reads weights as was declared when it was made."""
    first, again = (_on_npu("declared", _sample()) for _ in range(2))
    function = compiled(_fused)
    with declared_for_a_test():
        _compare(function(*first), first)
    _compare(function(*again), again)


def composes(columns: int) -> tuple[int, list[str]]:
    """Plain weights with this number of columns in w_idx_proj, eagerly and in a graph.

    Returns how often phase 1 ran for the eager call, and the types of the graph's nodes.
    """
    sizes = replace(samples.FRACTAL_SIZES, index_heads=columns)
    on_cpu = list(samples.fused_arguments(sizes).values())
    expected = _fused(*[each.clone() for each in on_cpu])
    with tempfile.TemporaryDirectory() as folder:
        eager, counted = count_phase_1(_fused, *[each.to("npu") for each in on_cpu])
        graph = compiled(_fused, folder)(*[each.to("npu") for each in on_cpu])
        types = [*types_in(folder)]
    for returned in (eager, graph):
        attention_comparison.compare_fused(returned.cpu(), expected, SampleInput(tuple(on_cpu)))
    return counted, types
