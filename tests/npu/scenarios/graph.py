"""Ops in graphs: torchair's graph engine, npugraph_ex, and captured NPU graphs."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from typing import Any

import torch
import torch_npu
import torchair
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import samples
from custom_pypto_testing.case import Case
from custom_pypto_testing.checks.values import compare_mutated, compare_returned

from scenarios.calls import refusal, refusal_before_writing
from scenarios.ge_graph import GeGraph
from scenarios.samples import (
    case_named,
    cases_of,
    one_of_each_form,
    refused_cases,
    with_other_values,
)

PUBLISHED = "published"
"""The name of a sample of the prologs, and of the fused op, at sizes that MlaPrologV3 takes."""


def _backend(name: str, config: Any = None) -> Any:
    if name == "torchair":
        return torchair.get_npu_backend(compiler_config=config or torchair.CompilerConfig())
    return name


def _compiled(op: Any, backend: Any, dynamic: bool) -> Any:
    torch._dynamo.reset()

    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)


def _check(function: Any, case: Case) -> Case:
    """Returns the call: what holds it, holds the memory of its arguments."""
    call = case.copy()
    try:
        returned = function(*call.args, **call.kwargs)
        compare_returned(case, returned, case.expected.returned)
        compare_mutated(case, call.mutable, case.expected.mutated)
    except Exception as error:
        raise AssertionError(f"{case.id}: {error}") from error
    return call


def compiles(name: str, backend: str, dynamic: bool) -> int:
    """Samples, with their values and then with others. Returns how many they are.

    A static graph of torchair's is made of every sample. Symbolic sizes, and npugraph_ex, which
    calls eager kernels, do not distinguish sizes: they get one sample of each form.
    """
    cases = cases_of(name)
    if dynamic or backend != "torchair":
        cases = one_of_each_form(cases)
    for case in cases:
        function = _compiled(case.op.overload, _backend(backend), dynamic)
        _check(function, case)
        # Held: torchair takes a larger cache for this one where it gets this one's memory.
        _earlier = _check(function, with_other_values(case))
        if dynamic and case.sample.resized is not None:
            _check(function, case.resized)
    return len(cases)


def one_function_takes(name: str) -> int:
    """Every sample, by one compiled function. Returns how many they are."""
    cases = cases_of(name)
    function = _compiled(cases[0].op.overload, _backend("torchair"), dynamic=True)
    _earlier = [_check(function, case) for case in (*cases, *cases)]
    return len(cases)


def replays(name: str) -> int:
    """Capture the op, change its arguments in place, replay. Returns how many samples there are."""
    # A tensor that overlaps itself cannot be changed in place.
    cases = [case for case in cases_of(name) if case.sample.name != "expanded"]
    for case in cases:
        call = case.copy()
        call.run()
        torch_npu.npu.synchronize()
        graph = torch_npu.npu.NPUGraph()
        with torch_npu.npu.graph(graph):
            returned = call.run()
        for other in (with_other_values(case), case):
            for argument, tensor in other.copy().tensors.items():
                call.tensors[argument].copy_(tensor)
            graph.replay()
            torch_npu.npu.synchronize()
            compare_returned(other, returned, other.expected.returned)
            compare_mutated(other, call.mutable, other.expected.mutated)
    return len(cases)


def nodes(name: str, sample: str) -> list[dict[str, Any]]:
    """The nodes that torchair makes of a sample."""
    return _graphs(name, sample)["original"].nodes()


def copied_arguments(name: str, sample: str) -> list[str]:
    """The arguments that the graph of a sample copies in each run."""
    return _graphs(name, sample)["optimized"].copied_arguments()


def written_arguments(name: str, sample: str) -> list[str]:
    """The arguments that the graph of a sample writes to; see `GeGraph.written_arguments`."""
    return _graphs(name, sample)["optimized"].written_arguments()


@cache
def _graphs(name: str, sample: str) -> dict[str, GeGraph]:
    """The graph of a sample in both stages; its results are right."""
    case = _published(name) if sample == PUBLISHED else case_named(name, sample)
    with tempfile.TemporaryDirectory() as folder:
        _check(_compiled(case.op.overload, dumping(folder), dynamic=False), case)
        return {stage: GeGraph(folder, stage) for stage in ("original", "optimized")}


def dumping(folder: str) -> Any:
    """The backend of torchair, which writes its graphs to a folder."""
    config = torchair.CompilerConfig()
    config.debug.graph_dump.type = "txt"
    config.debug.graph_dump.path = folder
    return _backend("torchair", config)


def refuses_log_sum_exp() -> str:
    """The error of a graph in which SparseFlashAttention would return the log-sum-exp."""
    call = case_named("npu_sparse_flash_attention", "log-sum-exp").copy()
    return refusal(
        _compiled(call.op.overload, _backend("torchair"), False), *call.args, **call.kwargs
    )


def refuses_what_its_nodes_do_not_take(name: str) -> list[str]:
    """The errors of graphs for two of the samples that this machine's operators refuse."""
    return [_refusal(case) for case in refused_cases(name)[:2]]


def refuses_sample(name: str, sample: str) -> str:
    """The error of a graph for a sample; no cache is written."""
    return _refusal(case_named(name, sample))


def _refusal(case: Case) -> str:
    function = _compiled(case.op.overload, _backend("torchair"), False)
    return refusal_before_writing(case.copy(), function)


def refuses_dtype(dtype: str) -> str:
    """The error of a graph with add_custom for a dtype that it does not take on NPUs."""
    value = torch.ones(3, device="npu", dtype=getattr(torch, dtype))
    add_custom = torch.ops.custom_pypto.add_custom.default
    return refusal(_compiled(add_custom, _backend("torchair"), False), value, value)


def _published(name: str) -> Case:
    """A case of an op of sparse_attention at the sizes that MlaPrologV3 takes, with few heads."""
    sizes = samples.Sizes(
        hidden=7168,
        query_rank=1536,
        heads=2,
        nope=128,
        latent=512,
        rope=64,
        block_size=128,
        index_heads=16,
        index_size=128,
    )
    arguments = {
        "npu_mla_prolog": samples.mla_arguments,
        "npu_indexer_prolog": samples.indexer_arguments,
        "npu_sparse_attention_pto": samples.fused_arguments,
    }[name](sizes, "npu")
    first = cases_of(name)[0]
    sample = SampleInput(tuple(arguments.values()), name=PUBLISHED)
    return replace(first, sample=sample)
