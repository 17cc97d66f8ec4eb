"""One graph of all ops that write: they write slices in their places."""

import functools
from collections.abc import Callable
from typing import Any

import custom_pypto.core
import pytest
import torch
from custom_pypto.core import mutated_slices
from custom_pypto_testing.case import Case
from custom_pypto_testing.checks.compilation import (
    SLICES,
    CallModule,
    Slices,
    call_of_slices,
    check_written_slices,
)
from custom_pypto_testing.ops_under_test import ops_of_plugin
from custom_pypto_testing.outputs import storage_bytes
from torch import Tensor
from torch.export import Dim


@functools.cache
def calls() -> list[Case]:
    """One of each op that writes."""
    ops = [op for each in custom_pypto.core.plugins() for op in ops_of_plugin(each.name, "cpu")]
    return [
        next(each for each in op.cases if each.mutable and each.sample.resized is not None)
        for op in ops
        if "!)" in str(op.schema)
    ]


class Calls(torch.nn.Module):
    """One call of each op, which writes to `slices`."""

    def __init__(self, slices: Slices) -> None:
        super().__init__()
        self._calls = [CallModule(case, slices) for case in calls()]

    def forward(self, tensors: list[dict[str, Tensor]]) -> Any:
        return [call(each) for call, each in zip(self._calls, tensors, strict=True)]


def ahead_of_time(large: list[Case], slices: Slices) -> Callable[[list[Case]], Any]:
    dims = [
        {name: dict.fromkeys(each, Dim.DYNAMIC) for name, each in case.dynamic_dims.items()}
        for case in large
    ]
    tensors = [case.copy().tensors for case in large]
    program = torch.export.export(Calls(slices), (tensors,), dynamic_shapes=(dims,))
    # To precompile torch's headers takes longer.
    options = {"precompile_headers": False, "compile_wrapper_opt_level": "O0"}
    aot_inductor = {f"aot_inductor.{name}": value for name, value in options.items()}
    with torch._inductor.config.patch(aot_inductor):
        package = torch._inductor.aoti_compile_and_package(program)
    run = torch._inductor.aoti_load_package(package)
    return lambda cases: run([each.tensors for each in cases])


def when_sizes_change(large: list[Case], slices: Slices) -> Callable[[list[Case]], Any]:
    """torch.compile's default: the sizes of the second call become symbols."""
    ops = [call_of_slices(case, slices) for case in large]

    @torch.compile(fullgraph=True)
    def run(arguments: list[tuple[Any, Any]]) -> Any:
        return [op(*args, **kwargs) for op, (args, kwargs) in zip(ops, arguments, strict=True)]

    torch.compiler.reset()
    return lambda cases: run([(each.args, each.kwargs) for each in cases])


# Of torch's own, when it copies a program.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize(
    ("compiled", "slices"), [*zip((when_sizes_change, ahead_of_time), SLICES, strict=True)]
)
def test_written_slices_with_symbolic_sizes(compiled: Any, slices: Slices) -> None:
    large = [slices.enlarged(case) for case in calls()]
    # The cache must not have code of other rules.
    with torch._inductor.config.patch({"fx_graph_cache": False, "cpp.simdlen": 1}):
        run = compiled(large, slices)
        for of_one_size in (large, [each.resized for each in large]):
            expected, actual = [[each.copy() for each in of_one_size] for _ in range(2)]
            Calls(slices)([each.tensors for each in expected])
            run(actual)
            for one, other in zip(actual, expected, strict=True):
                for name, tensor in one.mutable.items():
                    memory = storage_bytes(other.mutable[name])
                    assert storage_bytes(tensor).equal(memory), f"{one.name}: argument '{name}'"


def test_suite_finds_slices_that_an_exported_program_misplaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_misplaced = mutated_slices._is_misplaced

    def change(tensor: Tensor, *, is_exported: bool) -> bool:
        return not is_exported and is_misplaced(tensor, is_exported=False)

    monkeypatch.setattr(mutated_slices, "_is_misplaced", change)
    with pytest.raises(AssertionError, match=r"elements differ as .* in an exported program"):
        check_written_slices(calls()[0])
