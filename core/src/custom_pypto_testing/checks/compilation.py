"""Ops in torch.compile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from custom_pypto_testing.call import Call, tensor_outputs
from custom_pypto_testing.case import Case
from custom_pypto_testing.comparison import assert_same_bits
from custom_pypto_testing.counting import CountingBackend

from .side_effects import arguments_after


def check_compiled(case: Case) -> None:
    """The op gives the eager result when compiled as one graph with dynamic shapes."""
    backend, compiled = _compile(case, "aot_eager")
    _assert_as_eager(case.call(), case.call(), compiled, "when compiled")
    _assert_counts(case, backend, runs=1)


def check_not_recompiled(case: Case, backend: str) -> None:
    """The op that was compiled for the sample runs `resized` rightly, without recompiling."""
    if not any(case.dynamic_dims.values()):
        raise AssertionError(f"{case.name}: 'resized' of {case.sample.name!r} has the same sizes")
    counting, compiled = _compile(case, backend)
    _assert_as_eager(case.call(), case.call(), compiled, f"when compiled with {backend}")
    _assert_counts(case, counting, runs=1)
    when = f"when compiled with {backend} for another size"
    _assert_as_eager(case.resized_call(), case.resized_call(), compiled, when)
    if len(counting.graphs) > 1:
        raise AssertionError(
            f"{case.name}: torch.compile(dynamic=True) compiled again for the sizes of 'resized';"
            " the fake must not read a size as a plain int, nor branch on one."
            " TORCH_LOGS=recompiles shows the guard that failed"
        )
    _assert_counts(case, counting, runs=2)


def _compile(case: Case, backend: str) -> tuple[CountingBackend, Callable[..., Any]]:
    op = case.op

    def function(*args: Any, **kwargs: Any) -> Any:
        return op(*args, **kwargs)

    torch.compiler.reset()
    counting = CountingBackend(backend)
    compiled: Callable[..., Any] = torch.compile(
        function, fullgraph=True, dynamic=True, backend=counting
    )
    return counting, compiled


def _assert_as_eager(eager: Call, call: Call, compiled: Callable[..., Any], when: str) -> None:
    expected = tensor_outputs(eager.run()) | arguments_after(eager)
    with warnings.catch_warnings():
        # Inductor itself uses deprecated parts of torch. The author's warnings stay.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch\.")
        result = compiled(*call.args, **call.kwargs)
    actual = tensor_outputs(result) | arguments_after(call)
    assert_same_results(call, actual, expected, when)


def assert_same_results(
    call: Call, actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], when: str
) -> None:
    """Compare outputs and mutated arguments of two runs of one kernel, bit by bit."""
    if list(actual) != list(expected):
        raise AssertionError(f"{call.name} {when} returned {list(actual)}, not {list(expected)}")
    for name, tensor in actual.items():
        if tensor.shape != expected[name].shape or tensor.dtype != expected[name].dtype:
            raise AssertionError(
                f"{call.name}: {name} is {tensor.dtype} {list(tensor.shape)} {when}, not"
                f" {expected[name].dtype} {list(expected[name].shape)}"
            )
        assert_same_bits(f"{call.name}: {name}", tensor, expected[name], when)


def _assert_counts(case: Case, backend: CountingBackend, *, runs: int) -> None:
    found = (len(backend.graphs), backend.calls_of(case.op), backend.runs)
    if found != (1, 1, runs):
        raise AssertionError(
            f"{case.name}: torch.compile(fullgraph=True, dynamic=True) made {found[0]} graphs with"
            f" {found[1]} calls of the op, which ran {found[2]} times; expected 1, 1 and {runs}"
        )
