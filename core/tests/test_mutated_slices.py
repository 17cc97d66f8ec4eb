"""Slices that an op writes, in graphs of torch's compilers: nothing else is written."""

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch
from custom_pypto.core import mutated_slices
from custom_pypto.core.python_kernels import PythonKernels
from custom_pypto_contract.manifest import ManifestOp
from torch import Tensor

OP = "slices_add"
ops = torch.ops.custom_pypto
Write = Callable[[Tensor], Tensor]


@pytest.fixture(scope="module", autouse=True)
def kernels() -> Iterator[None]:
    made = PythonKernels()
    made.define([ManifestOp(OP, f"{OP}(Tensor(a!) x, *, Tensor(b!)[] more) -> ()")])
    made.library.impl(OP, add, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    made.add_for_writes([OP])
    made.add_fakes({OP: lambda x, *, more: None})
    # Code that was compiled without today's rules must not be found. To precompile torch's headers
    # takes longer than to compile what is here.
    options = {"fx_graph_cache": False, "aot_inductor.precompile_headers": False}
    with (
        torch._inductor.config.patch(options),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        yield
    made.remove()


def add(x: Tensor, *, more: list[Tensor]) -> None:
    for number, each in enumerate((x, *more), 1):
        each.add_(number)


def write(x: Tensor) -> Tensor:
    ops.slices_add(x[1], more=[x[2]])
    ops.slices_add(x[1:3], more=[x[3:4]])
    ops.slices_add(x.detach()[1], more=[x.detach()[2:4]])
    return x.sum()


def written_by(run: Write, begin: int, size: int) -> Tensor:
    """The memory after `run` got a part of it that begins at row `begin`."""
    memory = torch.arange(12.0 * size).view(12, size)
    run(memory[begin : begin + 6])
    return memory


def expect_right(run: Write, *places: tuple[int, int]) -> None:
    for begin, size in places:
        assert written_by(run, begin, size).equal(written_by(write, begin, size)), (begin, size)


@pytest.mark.parametrize(
    ("backend", "dynamic"),
    # The third call of "None" has symbols.
    [("aot_eager", True), ("aot_eager", None), ("inductor", False), ("inductor", None)],
)
def test_compiled_code_writes_the_slice(backend: str, dynamic: bool | None) -> None:
    torch.compiler.reset()
    run = torch.compile(write, backend=backend, dynamic=dynamic, fullgraph=True)
    expect_right(run, (2, 4), (3, 4), (0, 5), (2, 6))


def test_a_write_to_what_autograd_saved_is_an_error() -> None:
    def run(x: Tensor, weight: Tensor) -> Tensor:
        y = (x * weight).sum()
        ops.slices_add(x.detach(), more=[])
        return y

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        compiled(torch.ones(4), torch.ones(4, requires_grad=True)).backward()


def test_inductor_without_the_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.lowering as lowering

    target = torch.ops.aten.sym_storage_offset.default
    monkeypatch.delitem(lowering.lowerings, target, raising=False)
    monkeypatch.setattr(mutated_slices, "_lacks_lowering", True)
    torch.compiler.reset()
    expect_right(torch.compile(write, dynamic=True, fullgraph=True), (0, 4), (0, 5), (0, 6))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("copy", [Tensor.clone, lambda x: torch.empty_like(x).copy_(x)])
def test_inductor_keeps_a_copy_that_is_written(copy: Write, dynamic: bool) -> None:
    def write_copy(x: Tensor) -> Tensor:
        copied = copy(x[1])
        ops.slices_add(copied, more=[])
        return copied

    torch.compiler.reset()
    run = torch.compile(write_copy, dynamic=dynamic, fullgraph=True)
    for x in torch.arange(84.0).view(3, 7, 4)[:, 2:]:
        assert run(x).equal(write_copy(x))


def test_another_inductor_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutated_slices, "_lacks_lowering", False)
    monkeypatch.setitem(sys.modules, "torch._inductor.fx_passes.post_grad", SimpleNamespace())
    mutated_slices.mend_inductor()
    assert mutated_slices._lacks_lowering


# Of torch's own, when it copies a program.
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
@pytest.mark.parametrize("dynamic", [False, True])
def test_exported_program_writes_the_slice(dynamic: bool) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return write(x)

    shapes = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},) if dynamic else None
    program = torch.export.export(Module(), (torch.zeros(12, 4)[2:8],), dynamic_shapes=shapes)
    for each in (program, program.run_decompositions({})):
        expect_right(each.module(), (0, 4), (2, 4), (3, 6 if dynamic else 4))
