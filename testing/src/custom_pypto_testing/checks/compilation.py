"""Ops in torch.compile and torch.export, with written arguments that are slices among them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch._dynamo import lookup_backend
from torch._ops import OpOverload
from torch.export import Dim

from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_same_bits
from custom_pypto_testing.outputs import storage_bytes

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
        found = (len(counting.graphs), counting.calls_of(case.op.overload), counting.runs)
        if found != (1, 1, runs):
            raise AssertionError(
                f"{case.name}: torch.compile(fullgraph=True, dynamic=True) made {found[0]} graphs"
                f" with {found[1]} calls of the op, which ran {found[2]} times; expected 1, 1 and"
                f" {runs}"
            )


def check_exported(case: Case) -> None:
    """A program exported from the sample, its changing dimensions dynamic, runs `resized` too."""
    program = _export(case)
    if not any(node.target is case.op.overload for node in program.graph.nodes):
        raise AssertionError(f"{case.name} is not in the exported program:\n{program.graph}")
    run = partial(_run, program.module())
    for each_case in (case, case.resized):
        _assert_as_eager(each_case, run, "in the exported program")


class Slices(NamedTuple):
    """How each written tensor of a call is a part of a larger one."""

    backend: str
    what: str
    enlarge: Callable[[list[torch.Tensor]], torch.Tensor]
    cut: Callable[[torch.Tensor], torch.Tensor]

    def enlarged(self, case: Case) -> Case:
        """Return the case with the larger tensors, also in its `resized`."""
        wholes = {}
        for name, tensor in _written(case).items():
            # The others have other values, so that a wrong place shows where the op reads, too.
            other = torch.ones_like(tensor)
            wholes[name] = self.enlarge([other, tensor, other])
        large = case.replace(wholes)
        resized = case.sample.resized and self.enlarged(case.resized).sample
        return replace(large, sample=replace(large.sample, resized=resized))


class CallModule(torch.nn.Module):
    """The call, with its tensors as the one argument; it writes to `slices` of them."""

    def __init__(self, call: Case, slices: Slices | None = None) -> None:
        super().__init__()
        self._call, self._slices = call, slices

    def forward(self, tensors: dict[str, torch.Tensor]) -> Any:
        """Return what the op returns."""
        call = self._call.replace(tensors)
        if self._slices is not None:
            cut = self._slices.cut
            call = call.replace({name: cut(each) for name, each in _written(call).items()})
        return call.run()


def _written(case: Case) -> dict[str, torch.Tensor]:
    return {name: each for name, each in case.mutable.items() if each.dim()}


def _run(module: Callable[..., Any], call: Case) -> Any:
    return module(call.tensors)


def _export(case: Case, slices: Slices | None = None) -> torch.export.ExportedProgram:
    call = case.copy()
    dims = {name: dict.fromkeys(each, Dim.DYNAMIC) for name, each in case.dynamic_dims.items()}
    return torch.export.export(CallModule(call, slices), (call.tensors,), dynamic_shapes=(dims,))


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
        # Append it last: torch raises an exception to start again if it makes a number a constant.
        self.graphs.append(graph)

        def run(*args: Any) -> Any:
            self.runs += 1
            return compiled(*args)

        return run

    def calls_of(self, op: OpOverload[..., Any]) -> int:
        targets = (op, op.overloadpacket)
        return sum(node.target in targets for graph in self.graphs for node in graph.graph.nodes)


def compile_op(case: Case, backend: Any, *, dynamic: bool) -> Callable[..., Any]:
    """Return the op, compiled as one graph."""
    op = case.op.overload

    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, dynamic=dynamic, backend=backend)


def _compile(case: Case, backend: str) -> tuple[_CountingBackend, Callable[[Case], Any]]:
    counting = _CountingBackend(backend)
    compiled = compile_op(case, counting, dynamic=True)

    def run(call: Case) -> Any:
        with warnings.catch_warnings():
            # Inductor itself uses deprecated parts of torch. The author's warnings stay.
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch\.")
            return compiled(*call.args, **call.kwargs)

    return counting, run


def _assert_as_eager(case: Case, run: Callable[[Case], Any], when: str) -> None:
    compare_runs(case, run_of(case.copy(), run), run_of(case.copy()), when)


def check_written_slices(case: Case) -> None:
    """With symbolic sizes, the op writes the slices of its call, and nothing beside them.

    Compiled code and exported programs also run `resized`, where the slices begin elsewhere. An
    exported program treats all kinds of slices alike: on a CPU one kind is enough.
    """
    for slices in SLICES if _written(case) else ():
        large = slices.enlarged(case)
        runs: dict[str, Callable[[Case], Any]] = {}
        is_of_inductor = slices.backend == "inductor"
        if case.is_on_cpu or not is_of_inductor:
            runs[f"compiled with {slices.backend}"] = _compile_slices(case, slices)
        if not (case.is_on_cpu and is_of_inductor):
            with warnings.catch_warnings():
                # Of torch's own, when it copies a program.
                warnings.filterwarnings("ignore", ".*LeafSpec", category=FutureWarning)
                program = _export(large, slices).run_decompositions({})
            runs["in an exported program"] = partial(_run, program.module())
        for each, (how, run) in product((large, large.resized), runs.items()):
            expected, actual = each.copy(), each.copy()
            CallModule(case, slices)(expected.tensors)
            run(actual)
            for name, tensor in actual.mutable.items():
                when = f"as {slices.what}, {how} with symbolic sizes"
                memory, wanted = storage_bytes(tensor), storage_bytes(expected.mutable[name])
                argument = f"{case.name}: argument '{name}': bytes of its memory"
                assert_same_bits(argument, memory, wanted, when)


def _compile_slices(case: Case, slices: Slices) -> Callable[[Case], Any]:
    torch.compiler.reset()
    options: Any = {"dynamic": True, "backend": slices.backend}
    compiled = torch.compile(call_of_slices(case, slices), fullgraph=True, **options)
    return lambda call: compiled(*call.args, **call.kwargs)


def call_of_slices(case: Case, slices: Slices) -> Callable[..., Any]:
    """Return a function of the op's arguments that cuts those which the op writes."""
    names = [argument.name for argument in case.op.schema.arguments]
    written = {name.partition("[")[0] for name in _written(case)}

    def given(name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [given(name, each) for each in value]
        return slices.cut(value) if name in written and value is not None else value

    def function(*args: Any, **kwargs: Any) -> Any:
        return case.op.overload(
            *map(given, names, args), **{name: given(name, each) for name, each in kwargs.items()}
        )

    return function


# Inductor makes the slices anew by their offsets. Elsewhere the op writes copies.
SLICES = (
    Slices("inductor", "one of three layers", torch.stack, lambda whole: whole[1]),
    Slices(
        "aot_eager",
        "a part of a tensor that begins inside its memory",
        lambda three: torch.cat([three[0], *three])[len(three[0]) :],
        lambda whole: whole.unflatten(0, (3, -1))[1],  # type: ignore[no-untyped-call]
    ),
)
