"""Under MindSpore's compilers an op runs uncompiled, or reports that it cannot be compiled."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import custom_pypto_mindspore as cp
import mindspore
import pytest
from custom_pypto_mindspore.ops import add_custom
from mindspore import Tensor, nn

REFUSED = (
    "{}: cannot be compiled by MindSpore: call it in PyNative mode, outside of functions under"
    " mindspore.jit and of Cells in GRAPH_MODE"
)


@pytest.fixture(autouse=True)
def _reports_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # MindSpore reports compile errors in a file in the current folder.
    monkeypatch.chdir(tmp_path)


def by_module(x: Tensor) -> Tensor:
    return cp.ops.add_custom(x, x) + 1


def of_a_list(x: Tensor) -> Tensor:
    return add_custom([x, x], None, "text", other=1.5) + 1


def without_result(x: Tensor) -> Tensor:
    cp.npu_ops.adv_step_flash(1, 1, 1, x, x, x, x, x, x)
    return x


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (by_module, "add_custom"),
        (of_a_list, "add_custom"),
        (without_result, "npu_advance_step_flashattn"),
    ],
)
def test_jit_is_refused_by_the_op(function: object, op: str, vector: Tensor) -> None:
    with pytest.raises(RuntimeError, match=f"^{REFUSED.format(op)}"):
        mindspore.jit(function)(vector)


class Layer(nn.Cell):  # type: ignore[misc]
    def construct(self, x: Tensor) -> Tensor:
        return cp.ops.add_custom(x, x).sum()


@pytest.fixture
def graph_mode() -> Iterator[None]:
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    yield
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)


@pytest.mark.usefixtures("graph_mode")
def test_a_cell_in_graph_mode_is_refused_by_the_op(vector: Tensor) -> None:
    for compiled in (Layer(), mindspore.grad(Layer())):
        with pytest.raises(RuntimeError, match=f"^{REFUSED.format('add_custom')}"):
            compiled(vector)


@pytest.mark.usefixtures("graph_mode")
def test_a_call_outside_of_a_cell_is_not_compiled_in_graph_mode(vector: Tensor) -> None:
    assert cp.ops.add_custom(vector, vector).asnumpy().tolist() == [2, 4, 6, 8]


def test_bytecode_is_captured_around_the_op(vector: Tensor) -> None:
    captured = mindspore.jit(by_module, capture_mode="bytecode")
    assert captured(vector).asnumpy().tolist() == [3, 5, 7, 9]
    # Not the first call's results again.
    assert captured(vector + 1).asnumpy().tolist() == [5, 7, 9, 11]


TRACED = """
import mindspore
import custom_pypto_mindspore as cp

def traced(x):
    return cp.ops.add_custom(x, x) + 1

try:
    mindspore.jit(traced, capture_mode="trace")(mindspore.Tensor([1.0]))
except RuntimeError as error:
    print(error, flush=True)
"""


def test_a_trace_is_refused_by_the_op(tmp_path: Path) -> None:
    """It would take the first call's results for constants."""
    # In a process of its own: MindSpore 2.10 aborts at exit after any error in a trace.
    script = tmp_path / "traced.py"
    script.write_text(TRACED)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert REFUSED.format("add_custom") in run.stdout, run.stderr
