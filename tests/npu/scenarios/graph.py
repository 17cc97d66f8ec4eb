"""Ops in graphs of torchair: their nodes, their copies, and what they refuse."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torchair
from custom_pypto_plugin import SampleInput
from custom_pypto_sparse_attention import samples
from custom_pypto_testing.case import Case
from custom_pypto_testing.checks.values import compare_with_reference
from custom_pypto_testing.outputs import Run
from google.protobuf import text_format
from torchair._ge_concrete_graph.ge_ir_pb2 import GraphDef

from scenarios.calls import refusal, refusal_before_writing
from scenarios.samples import case_named, cases_of

PUBLISHED = "published"
"""The name of a sample of the prologs, and of the fused op, at sizes that MlaPrologV3 takes."""
_COPYING = ("TensorMove", "Identity")


def compiled(op: Any, folder: str = "", *, dynamic: bool = False) -> Any:
    """Return the op compiled by torchair, which writes its graphs to a folder."""
    torch._dynamo.reset()
    config = torchair.CompilerConfig()
    if folder:
        config.debug.graph_dump.type = "txt"
        config.debug.graph_dump.path = folder
    backend = torchair.get_npu_backend(compiler_config=config)

    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    return torch.compile(function, backend=backend, fullgraph=True, dynamic=dynamic)


def _check(function: Any, case: Case) -> Case:
    """Return the call: what holds it, holds the memory of its arguments."""
    call = case.copy()
    compare_with_reference(case, Run(function(*call.args, **call.kwargs), call.mutable))
    return call


def one_function_takes(name: str) -> int:
    """Every sample, by one compiled function. Returns how many they are."""
    cases = cases_of(name)
    function = compiled(cases[0].op.overload, dynamic=True)
    _earlier = [_check(function, case) for case in (*cases, *cases)]
    return len(cases)


def types(name: str, sample: str) -> list[str]:
    """The types of the nodes that torchair makes of a sample."""
    return [*_types_and_copies(name, sample)[0]]


def copied_arguments(name: str, sample: str) -> list[int]:
    """The numbers of the arguments that the graph of a sample copies in each run."""
    return _types_and_copies(name, sample)[1]


@cache
def _types_and_copies(name: str, sample: str) -> tuple[set[str], list[int]]:
    """Of the graph of a sample, whose results are right."""
    case = _published(name) if sample == PUBLISHED else case_named(name, sample)
    with tempfile.TemporaryDirectory() as folder:
        _check(compiled(case.op.overload, folder), case)
        return types_in(folder), sorted({*_copied_in(_read(folder, "optimized"))})


def types_in(folder: str) -> set[str]:
    """The types of the nodes of the graph that torchair has written to a folder."""
    return {node.type for node in _read(folder, "original").values()}


def _read(folder: str, stage: str) -> dict[str, Any]:
    """The nodes by name of a graph: as converters made it, or "optimized" by torchair."""
    (dump,) = Path(folder).glob(f"dynamo_{stage}_graph_*.txt")
    graph = text_format.Parse(dump.read_text(encoding="utf-8"), GraphDef())
    return {node.name: node for node in graph.op}


def _copied_in(nodes: dict[str, Any]) -> Iterator[int]:
    for node in nodes.values():
        if node.type in _COPYING:
            source = _source(nodes, _inputs(node)["x"])
            if source.type == "Data":
                yield source.attr["index"].i


def _source(nodes: dict[str, Any], tensor: str) -> Any:
    """The node that made the memory of a tensor, which others may have copied or written to."""
    name, _, index = tensor.rpartition(":")
    node = nodes[name]
    if node.type == "Data":
        return node
    inputs = _inputs(node)
    same = "x" if node.type in _COPYING else node.output_desc[int(index)].name
    return _source(nodes, inputs[same]) if same in inputs else node


def _inputs(node: Any) -> dict[str, str]:
    """The tensors that go into a node, by name, without its control edges."""
    tensors = [each for each in node.input if not each.endswith(":-1")]
    return dict(zip((each.name for each in node.input_desc), tensors, strict=True))


def refuses(name: str, sample: str = "") -> str:
    """The error of a graph for a sample, or for the first; no cache is written."""
    case = case_named(name, sample) if sample else cases_of(name)[0]
    return refusal_before_writing(case.copy(), compiled(case.op.overload))


def refuses_dtype(dtype: str) -> list[str]:
    """The errors of add_custom for a dtype that it does not take on NPUs: eager, and in a graph."""
    value = torch.ones(3, device="npu", dtype=getattr(torch, dtype))
    add_custom = torch.ops.custom_pypto.add_custom.default
    return [refusal(each, value, value) for each in (add_custom, compiled(add_custom))]


def _published(name: str) -> Case:
    """A case of an op of sparse_attention at the sizes that MlaPrologV3 takes, with few heads."""
    sizes = replace(samples.DEEPSEEK_V32, lengths=(40, 7), tokens=1, heads=2, index_heads=16)
    arguments = {
        "npu_mla_prolog": samples.mla_arguments,
        "npu_sparse_attention_pto": samples.fused_arguments,
    }[name](sizes, "npu")
    return replace(cases_of(name)[0], sample=SampleInput(tuple(arguments.values()), name=PUBLISHED))
