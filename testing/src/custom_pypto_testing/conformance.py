"""The suite as a test class; docs/testing.md explains each test to plugin authors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, ClassVar

import pytest

from . import checks
from .case import Case, one_of_each_graph
from .ops_under_test import Op, ops_of_plugin
from .plugin import UNCHECKED, devices, fuzz_series
from .sample_generator import DrawingError, NoCallError
from .verification.processes import OF_NPUS

Note = Callable[[str], None]
_MOST_ON_NPUS = 2
"""Cases of an op that are captured and put into graphs, each of which takes seconds."""


def _resized(cases: list[Case]) -> list[Case]:
    return [case for case in one_of_each_graph(cases) if case.sample.resized is not None]


def _one_of_each_write(cases: list[Case]) -> list[Case]:
    """Return one resized case for each set of written tensors and their numbers of dimensions."""
    chosen: dict[object, Case] = {}
    for case in _resized(cases):
        written = tuple((name, tensor.dim()) for name, tensor in case.mutable.items())
        chosen.setdefault(written, case)
    return list(chosen.values())


_SELECTED: dict[str, Callable[[list[Case]], list[Case]]] = {
    "case": lambda cases: cases,
    "graph_case": one_of_each_graph,
    "resized_case": _resized,
    "written_case": _one_of_each_write,
    "gradient_case": lambda cases: [
        case for case in cases if case.op.is_differentiable and case.is_float64
    ],
    "npu_case": lambda cases: one_of_each_graph(cases)[:_MOST_ON_NPUS],
}

_NOTHING = {
    "resized_case": ("no-tensors", "dynamic sizes: the op takes no tensors"),
    "written_case": ("no-tensors", "slices: the op takes no tensors"),
    "gradient_case": ("no-float64", "gradients: they are checked in float64, on the CPU"),
}
"""Why an op with the samples that it needs has no case, as an id and for the end of the report."""


def _parameter(what: str) -> Any:
    """Return a fixture of cases. It raises an error, and keeps a text for the report."""

    @pytest.fixture
    def parameter(self: object, request: pytest.FixtureRequest, note: Note) -> object:
        found = request.param
        if isinstance(found, Exception):
            raise found
        if not isinstance(found, str):
            return found
        note(found)
        return None

    parameter.__doc__ = what
    return parameter


class Conformance:
    """Derive from it and name the plugin: every op is then tested with every sample.

        class TestAddCustom(custom_pypto_testing.Conformance):
            plugin = "add_custom"

    The tests run on the devices that ``--custom-pypto-device`` names, by default on cpu.
    """

    plugin: ClassVar[str]

    @classmethod
    def ops(cls, device: str) -> Iterable[Op]:
        """The tested ops on a device. Override it to test ops that no plugin provides.

        Raises:
            AssertionError: the plugin is not loaded; the message says why.
        """
        return ops_of_plugin(cls.plugin, device)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test its ops or cases, by the fixture that it asks for."""
        for fixture in {"op", *_SELECTED}.intersection(metafunc.fixturenames):
            parameters = [
                pytest.param(value, id=name)
                for device in devices(metafunc.config)
                for name, value in _parameters(type(self), fixture, device)
            ]
            metafunc.parametrize(fixture, parameters, indirect=True)

    op = _parameter("An op with its cases.")
    case = _parameter("An op with one of its samples.")
    graph_case = _parameter("An op with one of the samples of which torch makes the same graph.")
    resized_case = _parameter("The same, at two sizes; None if the op takes no tensors.")
    written_case = _parameter("The same, one for each set of written tensors.")
    gradient_case = _parameter("A differentiable op with a float64 sample; None if there is none.")
    npu_case = _parameter("An op with one of a few samples; None on the CPU.")

    @pytest.fixture
    def note(self, record_property: Callable[..., None]) -> Note:
        """Keeps what a check did not check, for the end of pytest's report."""
        return partial(record_property, UNCHECKED)

    def test_op_has_a_reference(self, op: Op) -> None:
        """The reference defines right results."""
        checks.check_has_reference(op)

    def test_op_has_the_samples_it_needs(self, op: Op) -> None:
        """One at two sizes; and a float64 one, if the op is differentiable."""
        checks.check_has_samples(op)

    def test_agrees_with_its_contract(self, op: Op, note: Note) -> None:
        """Random calls that it allows: kernel, reference and fake."""
        for text in checks.left_out(op):
            note(f"{op.name}: {text}")
        try:
            checks.check_drawn(op)
        except NoCallError as error:
            if op.device == "cpu":
                raise
            note(f"{op.name}: random calls: {error}")

    def test_refuses_what_its_contract_refuses(self, op: Op, note: Note) -> None:
        """Calls that break one rule, by kernel and fake in the same words."""
        checks.check_refusals(op, lambda text: note(f"{op.name}: {text}"))

    def test_refuses_memory_that_it_cannot_use(self, op: Op) -> None:
        """Tensors without memory; and written ones that share theirs."""
        checks.check_memory(op)

    def test_holds_when_fuzzed(
        self, op: Op, request: pytest.FixtureRequest, record_property: Callable[..., None]
    ) -> None:
        """Random calls, in a process of their own."""
        checks.check_fuzzed(op, fuzz_series(request.config), record_property)

    def test_returns_what_the_reference_returns(self, case: Case) -> None:
        """By the reference's own comparison, or by `custom_pypto_testing.assert_close`."""
        checks.check_values(case)

    def test_mutates_as_the_reference_does(self, case: Case) -> None:
        """The mutable arguments after the call."""
        checks.check_mutated(case)

    def test_leaves_other_arguments_unchanged(self, case: Case) -> None:
        """Arguments that the schema does not mark as mutable."""
        checks.check_unchanged(case)

    def test_bumps_version_counters_of_mutable_arguments_only(self, case: Case) -> None:
        """autograd needs them to see that a saved tensor was changed."""
        checks.check_versions(case)

    def test_returns_tensors_of_its_own(self, case: Case) -> None:
        """No output shares memory with an argument or another output."""
        checks.check_aliasing(case)

    def test_passes_opcheck(self, graph_case: Case, note: Note) -> None:
        """`torch.library.opcheck`, also with gradients if the op is differentiable."""
        for test, reason in checks.left_out_of_opcheck(graph_case).items():
            note(f"{graph_case.id}: opcheck: {test}: {reason}")
        checks.check_operator(graph_case)

    def test_fake_agrees_with_kernel(self, case: Case) -> None:
        """Shape, dtype, strides and device."""
        checks.check_fake(case)

    def test_fake_agrees_with_kernel_for_symbolic_sizes(self, graph_case: Case) -> None:
        """Shape, dtype, strides and device, also at the other size."""
        checks.check_symbolic_fake(graph_case)

    def test_compiles(self, graph_case: Case) -> None:
        """`torch.compile` with fullgraph and dynamic shapes: one graph."""
        # Inductor compiles the others: it traces them in the same way.
        if graph_case.sample.resized is None or not graph_case.is_on_cpu:
            checks.check_compiled(graph_case, "aot_eager")

    def test_compiles_with_inductor(self, resized_case: Case | None, note: Note) -> None:
        """The same by torch.compile's usual backend, also for the other size."""
        if resized_case is None:
            return
        if resized_case.is_on_cpu:
            checks.check_compiled(resized_case, "inductor")
        else:
            text = "inductor compiles for the CPU; an NPU is compiled for by torchair"
            note(f"{resized_case.id}: {text}")

    def test_exports_with_dynamic_sizes(self, resized_case: Case | None) -> None:
        """A program exported with `torch.export` from one size runs the other."""
        if resized_case is not None:
            checks.check_exported(resized_case)

    def test_writes_slices_with_inductor(self, written_case: Case | None, note: Note) -> None:
        """Slices of larger tensors, whose offsets are symbols, as written arguments."""
        if written_case is not None:
            checks.check_written_slices(written_case)
            if not written_case.is_on_cpu:
                note(f"{written_case.id}: only aot_eager; inductor compiles for the CPU")

    def test_gradients(self, gradient_case: Case | None) -> None:
        """`torch.autograd.gradcheck`."""
        if gradient_case is not None:
            checks.check_gradients(gradient_case)

    def test_second_gradients(self, gradient_case: Case | None) -> None:
        """`torch.autograd.gradgradcheck`."""
        if gradient_case is not None:
            checks.check_second_gradients(gradient_case)

    def test_gives_the_same_bits_with_any_number_of_threads(self, case: Case) -> None:
        """Results have equal bits with 1 and 2 threads."""
        checks.check_threads(case)

    def test_large_calls_are_right_with_any_number_of_threads(self, op: Op, note: Note) -> None:
        """A drawn call for each dim, in which that is large."""
        checks.check_large_calls(op, lambda text: note(f"{op.name}: {text}"))

    def test_takes_any_strides(self, case: Case) -> None:
        """Any strides work, or the error asks for contiguous."""
        checks.check_strides(case)

    def test_refuses_tensors_on_several_devices(self, graph_case: Case) -> None:
        """With one tensor on meta, the op raises an error, or all results are on meta."""
        checks.check_devices(graph_case)

    def test_works_on_streams_and_in_graphs_of_an_npu(
        self, npu_case: Case | None, note: Note
    ) -> None:
        """Calls again, on another stream, in captured graphs and in graphs of torchair."""
        for name in OF_NPUS if npu_case is not None else ():
            assert npu_case is not None
            try:
                getattr(checks, f"check_{name}")(npu_case)
            except checks.NotCheckedError as error:
                note(f"{npu_case.id}: {name}: {error}")


@cache
def _ops(suite: type[Conformance], device: str) -> tuple[Op, ...]:
    return tuple(suite.ops(device))


def _parameters(
    suite: type[Conformance], fixture: str, device: str
) -> Iterator[tuple[str, object]]:
    """Ids and parameters: an op, a case, or what is instead of one."""
    suffix = "" if device == "cpu" else f"-{device}"
    try:
        ops = _ops(suite, device)  # type: ignore[arg-type]  # mypy #11470
    except Exception as error:
        yield f"unavailable{suffix}", error
        return
    if fixture == "op":
        yield from ((op.name + suffix, op) for op in ops)
    elif fixture == "npu_case" and device == "cpu":
        yield "no-npu", None
    elif fixture == "gradient_case" and not any(op.is_differentiable for op in ops):
        yield f"no-differentiable-op{suffix}", None
    else:
        for op in ops:
            yield from ((f"{each}{suffix}", value) for each, value in _cases(op, fixture))


def _cases(op: Op, fixture: str) -> Iterator[tuple[str, object]]:
    try:
        cases = _SELECTED[fixture]([*op.cases])
        yield from ((case.id, case) for case in cases)
        # pytest skips a test without parameters, and says so nowhere.
        if cases or (fixture == "gradient_case" and not op.is_differentiable):
            return
        checks.check_has_samples(op)
    except (AssertionError, DrawingError) as error:
        yield f"{op.name}-no-sample", error
    else:
        reason, text = _NOTHING[fixture]
        yield f"{op.name}-{reason}", f"{op.name}: {text}"
