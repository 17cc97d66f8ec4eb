"""Ops in graphs: torchair's graph engine, npugraph_ex, and captured NPU graphs."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch_npu
import torchair
from custom_pypto.core import Reference, SampleInput
from custom_pypto_testing.case import Case
from custom_pypto_testing.checks.values import compare_mutated, compare_returned
from google.protobuf import text_format
from torchair._ge_concrete_graph.ge_ir_pb2 import GraphDef

from scenarios.samples import altered, case_named, op, refused

_NOT_COMPUTING = ("Data", "Const", "NetOutput")


def _backend(name: str, config: Any = None) -> Any:
    if name == "torchair":
        return torchair.get_npu_backend(compiler_config=config or torchair.CompilerConfig())
    return name


def _compiled(case: Case, backend: Any, dynamic: bool) -> Any:
    torch._dynamo.reset()

    def function(*args: Any, **kwargs: Any) -> Any:
        return case.op(*args, **kwargs)

    return torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)


def _check(function: Any, case: Case) -> None:
    call = case.call()
    try:
        returned = function(*call.args, **call.kwargs)
        compare_returned(case, returned, case.expected.returned)
        compare_mutated(case, call.mutable, case.expected.mutated)
    except Exception as error:
        raise AssertionError(f"{case.id}: {error}") from error


def compiles(name: str, backend: str, dynamic: bool) -> int:
    """Every sample, with its values and then with others. Returns how many samples there are."""
    cases = op(name).cases
    for case in cases:
        function = _compiled(case, _backend(backend), dynamic)
        _check(function, case)
        _check(function, altered(case))
        if dynamic and case.sample.resized is not None:
            _check(function, Case(case.op, case.sample.resized, case.reference))
    return len(cases)


def replays(name: str) -> int:
    """Capture the op, change its arguments in place, replay. Returns how many samples there are."""
    # What overlaps itself cannot be changed in place.
    cases = [case for case in op(name).cases if case.sample.name != "expanded"]
    for case in cases:
        call = case.call()
        call.run()
        torch_npu.npu.synchronize()
        graph = torch_npu.npu.NPUGraph()
        with torch_npu.npu.graph(graph):
            returned = call.run()
        for other in (altered(case), case):
            for argument, tensor in other.call().tensors.items():
                call.tensors[argument].copy_(tensor)
            graph.replay()
            torch_npu.npu.synchronize()
            compare_returned(other, returned, other.expected.returned)
            compare_mutated(other, call.mutable, other.expected.mutated)
    return len(cases)


def nodes(name: str, sample: str, **options: Any) -> list[dict[str, Any]]:
    """The nodes that torchair makes of a sample, as its own dump of the graph has them."""
    case = next(case for case in op(name).cases if case.sample.name == sample)
    call = case.call()
    with tempfile.TemporaryDirectory() as folder:
        _compiled(case, _dumping(folder), dynamic=False)(*call.args, **call.kwargs)
        return _dumped(folder)


def _dumping(folder: str) -> Any:
    config = torchair.CompilerConfig()
    config.debug.graph_dump.type = "txt"
    config.debug.graph_dump.path = folder
    return _backend("torchair", config)


def _dumped(folder: str) -> list[dict[str, Any]]:
    (dump,) = Path(folder).glob("dynamo_original_graph_*.txt")
    graph = text_format.Parse(dump.read_text(encoding="utf-8"), GraphDef())
    names = {
        node.name: f"argument {node.attr['index'].i}" if node.type == "Data" else node.type
        for node in graph.op
    }
    return [_node(node, names) for node in graph.op if node.type not in _NOT_COMPUTING]


def _node(node: Any, names: dict[str, str]) -> dict[str, Any]:
    """A node; of its inputs, by name, the argument or the type of node that they come from."""
    sources = [source for source in node.input if not source.endswith(":-1")]
    wired = dict(zip((desc.name for desc in node.input_desc), sources, strict=True))
    attributes = {
        name: getattr(value, value.WhichOneof("value"))
        for name, value in node.attr.items()
        if not name.startswith("_")
    }
    return {
        "type": node.type,
        "inputs": {
            name: names[source.rsplit(":")[0]] if source else None for name, source in wired.items()
        },
        "outputs": [desc.name for desc in node.output_desc],
        "attributes": {
            name: value.decode() if isinstance(value, bytes) else value
            for name, value in attributes.items()
            if isinstance(value, bytes | int | float | bool | str)
        },
    }


def refuses_log_sum_exp() -> str:
    """The error of a graph that asks SparseFlashAttention for what it does not return."""
    case = case_named("npu_sparse_flash_attention", "log-sum-exp")
    call = case.call()
    try:
        _compiled(case, _backend("torchair"), False)(*call.args, **call.kwargs)
    except Exception as error:
        return str(error)
    raise AssertionError("no error")


def refuses_what_its_nodes_do_not_take(name: str) -> list[str]:
    """The errors of graphs for two of the samples that this machine's operators do not take."""
    messages = []
    for case in refused(name)[:2]:
        call = case.call()
        try:
            _compiled(case, _backend("torchair"), False)(*call.args, **call.kwargs)
        except Exception as error:
            messages.append(str(error))
    return messages


def runs_the_published_sizes() -> list[str]:
    """npu_mla_prolog at the sizes that MlaPrologV3 takes. Returns the types of the nodes."""
    plugin = importlib.import_module("custom_pypto_sparse_attention.samples")
    reference = importlib.import_module("custom_pypto_sparse_attention.reference")
    comparison = importlib.import_module("custom_pypto_sparse_attention.comparison")
    sizes = plugin.Sizes(
        hidden=7168, query_rank=1536, heads=2, nope=128, latent=512, rope=64, block_size=128
    )
    case = Case(
        torch.ops.custom_pypto.npu_mla_prolog.default,
        SampleInput(plugin.mla_arguments(sizes, "npu"), name="published"),
        Reference(reference.mla_prolog, comparison.compare),
    )
    with tempfile.TemporaryDirectory() as folder:
        _check(_compiled(case, _dumping(folder), dynamic=False), case)
        return [node["type"] for node in _dumped(folder)]
