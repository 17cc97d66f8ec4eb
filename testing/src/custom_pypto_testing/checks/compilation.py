"""Ops in torch.compile and torch.export."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import lookup_backend
from torch._ops import OpOverload
from torch.export import Dim

from custom_pypto_testing.case import Case

from .values import compare_runs, run_of


def check_compiled(case: Case, backend: str) -> None:
    """The op gives the eager result when compiled as one graph with dynamic shapes.

    The compiled code also runs `resized`, if the sample has it, without recompiling.
    """
    counting, compiled = _compile(case, backend)
    cases = {"": case}
    if case.sample.resized is not None:
        if not any(case.dynamic_dims.values()):
            raise AssertionError(
                f"{case.name}: 'resized' of {case.sample.name!r} has the same sizes"
            )
        cases[" for another size"] = case.resized
    for runs, (size, each) in enumerate(cases.items(), 1):
        _assert_as_eager(each, compiled, f"when compiled with {backend}{size}")
        if runs == len(counting.graphs) == 2:
            raise AssertionError(
                f"{case.name}: torch.compile(dynamic=True) compiled again for the sizes of"
                " 'resized'; the fake must not read a size as a plain int, nor branch on one."
                " TORCH_LOGS=recompiles shows the guard that failed"
            )
        _assert_counts(case, counting, runs=runs)


def check_exported(case: Case) -> None:
    """A program exported from the sample, its changing dimensions dynamic, runs `resized` too."""
    call = case.copy()
    program = torch.export.export(
        _Module(call),
        (call.tensors,),
        dynamic_shapes=({n: dict.fromkeys(d, Dim.DYNAMIC) for n, d in case.dynamic_dims.items()},),
    )
    if not any(node.target is case.op.overload for node in program.graph.nodes):
        raise AssertionError(f"{case.name} is not in the exported program:\n{program.graph}")
    for each_case in (case, case.resized):
        _assert_as_eager(
            each_case, lambda each: program.module()(each.tensors), "in the exported program"
        )


class _Module(torch.nn.Module):
    """The call, with its tensors as the one argument."""

    def __init__(self, call: Case) -> None:
        super().__init__()
        self._call = call

    def forward(self, tensors: dict[str, torch.Tensor]) -> Any:
        return self._call.replace(tensors).run()


class _CountingBackend:
    """Compiles with another backend, keeps the graphs and counts their runs."""

    def __init__(self, backend: str) -> None:
        self.graphs: list[torch.fx.GraphModule] = []
        self.runs = 0
        self._compile = lookup_backend(backend)

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor], **options: Any
    ) -> Callable[..., Any]:
        compiled = self._compile(graph, inputs, **options)
        # Not earlier: torch starts again, by an exception, when it makes a number a constant.
        self.graphs.append(graph)

        def run(*args: Any) -> Any:
            self.runs += 1
            return compiled(*args)

        return run

    def calls_of(self, op: OpOverload[..., Any]) -> int:
        targets = (op, op.overloadpacket)
        return sum(node.target in targets for graph in self.graphs for node in graph.graph.nodes)


def _compile(case: Case, backend: str) -> tuple[_CountingBackend, Callable[[Case], Any]]:
    op = case.op.overload

    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    torch.compiler.reset()
    counting = _CountingBackend(backend)
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=counting)

    def run(call: Case) -> Any:
        with warnings.catch_warnings():
            # Inductor itself uses deprecated parts of torch. The author's warnings stay.
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch\.")
            return compiled(*call.args, **call.kwargs)

    return counting, run


def _assert_as_eager(case: Case, run: Callable[[Case], Any], when: str) -> None:
    compare_runs(case, run_of(case.copy(), run), run_of(case.copy()), when)


def _assert_counts(case: Case, backend: _CountingBackend, *, runs: int) -> None:
    found = (len(backend.graphs), backend.calls_of(case.op.overload), backend.runs)
    if found != (1, 1, runs):
        raise AssertionError(
            f"{case.name}: torch.compile(fullgraph=True, dynamic=True) made {found[0]} graphs with"
            f" {found[1]} calls of the op, which ran {found[2]} times; expected 1, 1 and {runs}"
        )
