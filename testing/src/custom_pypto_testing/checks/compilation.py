"""Ops in torch.compile and torch.export, with written arguments that are slices among them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import lookup_backend
from torch._ops import OpOverload
from torch.export import Dim

from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_same_bits

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


_Enlarge = Callable[[list[torch.Tensor]], torch.Tensor]


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


def _assert_counts(case: Case, backend: _CountingBackend, *, runs: int) -> None:
    found = (len(backend.graphs), backend.calls_of(case.op.overload), backend.runs)
    if found != (1, 1, runs):
        raise AssertionError(
            f"{case.name}: torch.compile(fullgraph=True, dynamic=True) made {found[0]} graphs with"
            f" {found[1]} calls of the op, which ran {found[2]} times; expected 1, 1 and {runs}"
        )


def check_written_slices(case: Case) -> None:
    """Compiled with symbolic sizes, the op writes the slices of its call, and nothing beside them.

    The code also runs `resized`, where the slices begin elsewhere.
    """
    written = {name.partition("[")[0] for name in case.copy().mutable}
    if not written:
        return
    names = [argument.name for argument in case.op.schema.arguments]
    places = {names.index(name) for name in written} | written
    for backend, what, enlarge, cut in _SLICES:
        if backend == "inductor" and not case.is_on_cpu:
            continue

        def function(*args: Any, _cut: Any = cut, **kwargs: Any) -> Any:
            def given(place: object, value: Any) -> Any:
                if isinstance(value, list | tuple):
                    return [given(place, each) for each in value]
                is_whole = place in places and value is not None and value.dim() > 0
                return _cut(value) if is_whole else value

            return case.op.overload(
                *[given(place, value) for place, value in enumerate(args)],
                **{name: given(name, value) for name, value in kwargs.items()},
            )

        torch.compiler.reset()
        compiled = torch.compile(function, fullgraph=True, dynamic=True, backend=backend)
        for make_call in (case.copy, case.resized.copy):
            expected, actual = (
                _memory_after(make_call(), run, enlarge) for run in (function, compiled)
            )
            for name, memory in actual.items():
                when = f"as {what}, compiled with {backend} and symbolic sizes,"
                assert_same_bits(f"{case.name}: argument '{name}'", memory, expected[name], when)


def _memory_after(
    call: Case, run: Callable[..., Any], enlarge: _Enlarge
) -> dict[str, torch.Tensor]:
    wholes = {}
    for name, tensor in call.mutable.items():
        if tensor.dim():
            # The others have other values, so that a wrong place shows where the op reads, too.
            other = torch.ones_like(tensor)
            wholes[name] = enlarge([other, tensor, other])
    call = call.replace(wholes)
    run(*call.args, **call.kwargs)
    return {name: whole if whole._base is None else whole._base for name, whole in wholes.items()}


# Inductor makes the slices anew by their offsets. Elsewhere the op writes copies.
_SLICES: tuple[tuple[str, str, _Enlarge, Callable[[torch.Tensor], torch.Tensor]], ...] = (
    ("inductor", "one of three layers", torch.stack, lambda whole: whole[1]),
    (
        "aot_eager",
        "a part of a tensor that begins inside its memory",
        lambda three: torch.cat([three[0], *three])[len(three[0]) :],
        lambda whole: whole.unflatten(0, (3, -1))[1],  # type: ignore[no-untyped-call]
    ),
)
