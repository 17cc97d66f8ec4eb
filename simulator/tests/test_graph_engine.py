from __future__ import annotations

from pathlib import Path

import pytest
from script import PRELUDE, Run

# An op whose NPU kernel is a simulated aclnn kernel, defined in Python as a test can.
OPS = (
    PRELUDE
    + """
import torchair
from launch import launch_tensors
from torchair import ge

library = torch.library.Library("simtest", "DEF")
library.define("add(Tensor self, Tensor other) -> Tensor")
library.define("bump(Tensor(a!) cache, Tensor amount) -> Tensor")

def add_npu(self, other):
    out = torch.empty_like(self)
    launch_tensors("aclnnTestAdd", self, other, out)
    return out

def bump_npu(cache, amount):
    total = torch.empty((), device=cache.device)
    launch_tensors("aclnnTestBump", cache, amount, total)
    return total

library.impl("add", add_npu, "PrivateUse1")
library.impl("bump", bump_npu, "PrivateUse1")
torch.library.register_fake("simtest::add", lambda self, other: torch.empty_like(self))
torch.library.register_fake("simtest::bump", lambda cache, amount: cache.new_empty(()))

@torchair.register_fx_node_ge_converter(torch.ops.simtest.add.default)
def convert_add(self, other, meta_outputs=None):
    return ge.custom_op(
        "TestAdd", inputs={"self": self, "other": other}, outputs=["out"], attrs={})

@torchair.register_fx_node_ge_converter(torch.ops.simtest.bump.default)
def convert_bump(cache, amount, meta_outputs=None):
    _, total = ge.custom_op("TestBump", inputs={"cache": cache, "amount": amount},
                            outputs=["cache", "total"], attrs={})
    return total

def backend():
    return torchair.get_npu_backend(compiler_config=torchair.CompilerConfig())
"""
)


@pytest.mark.parametrize("dynamic", [False, True])
def test_torchair_runs_a_graph_with_a_custom_op(run: Run, opp: Path, dynamic: bool) -> None:
    run(
        f"""
        def function(x, y):
            return (torch.ops.simtest.add(x, y) * 2 + 1).to(torch.float16)
        compiled = torch.compile(function, backend=backend(), fullgraph=True, dynamic={dynamic})
        for rows in (3, 5, 8) if {dynamic} else (3,):
            x, y = torch.randn(rows, 4), torch.randn(rows, 4)
            expected = ((x + y) * 2 + 1).half()
            assert compiled(x.npu(), y.npu()).cpu().equal(expected)
    """,
        prelude=OPS,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_torchair_refuses_an_outdated_library_by_name(run: Run, outdated: Path) -> None:
    run(
        """
        compiled = torch.compile(torch.ops.simtest.add, backend=backend(), fullgraph=True)
        x = torch.randn(3, 4).npu()
        try:
            compiled(x, x)
        except Exception as error:
            text = str(error)
            assert "aclnnTestAdd: its library was built for another simulator: for torch" in text
        else:
            raise AssertionError
    """,
        prelude=OPS,
        ASCEND_CUSTOM_OPP_PATH=outdated,
    )


def test_torchair_runs_a_graph_that_mutates_its_input(run: Run, opp: Path) -> None:
    run(
        """
        def function(cache, amount):
            return torch.ops.simtest.bump(cache, amount) + 1
        compiled = torch.compile(function, backend=backend(), fullgraph=True, dynamic=False)
        cache = torch.zeros(4, device="npu")
        for step in (1, 2):
            total = compiled(cache, torch.ones(4, device="npu"))
            assert cache.cpu().tolist() == [step] * 4 and total.item() == 4 * step + 1
    """,
        prelude=OPS,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )


def test_common_operators_agree_with_eager(run: Run) -> None:
    run(
        """
        def function(x, w):
            y = torch.relu(x @ w) - x.mean(-1, keepdim=True)
            z = torch.cat([y, y.softmax(-1)], dim=0).reshape(-1, 2).transpose(0, 1)
            return (z * z.sum(1, keepdim=True)).exp().rsqrt() + torch.maximum(z, z.neg())
        x, w = torch.randn(4, 6), torch.randn(6, 6)
        compiled = torch.compile(function, backend=backend(), fullgraph=True, dynamic=False)
        torch.testing.assert_close(compiled(x.npu(), w.npu()).cpu(), function(x, w))
    """,
        prelude=OPS,
    )


def test_an_operator_that_is_not_emulated_fails_by_name(run: Run) -> None:
    result = run(
        """
        compiled = torch.compile(torch.special.erfcx if False else torch.erfinv,
                                 backend=backend(), fullgraph=True, dynamic=False)
        compiled(torch.zeros(3, device="npu")).cpu()
    """,
        prelude=OPS,
        check=False,
    )
    assert result.returncode != 0
    assert "operator 'Erfinv' is not emulated" in result.stderr


def test_an_input_that_the_kernel_does_not_have_is_named(run: Run, opp: Path) -> None:
    result = run(
        """
        @torchair.register_fx_node_ge_converter(torch.ops.simtest.add.default)
        def convert_wrong(self, other, meta_outputs=None):
            return ge.custom_op("TestAdd", inputs={"self": self, "wrong": other}, outputs=["out"],
                                attrs={})
        compiled = torch.compile(torch.ops.simtest.add, backend=backend(), dynamic=False)
        compiled(torch.zeros(3, device="npu"), torch.zeros(3, device="npu")).cpu()
    """,
        prelude=OPS,
        check=False,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )
    assert result.returncode != 0
    assert "TestAdd needs the input 'other'" in result.stderr


def test_npugraph_ex_runs_a_custom_op(run: Run, opp: Path) -> None:
    run(
        """
        def function(x, y):
            return torch.ops.simtest.add(x, y) * 2
        compiled = torch.compile(function, backend="npugraph_ex", fullgraph=True, dynamic=False)
        for _ in range(3):
            x, y = torch.randn(3, 4), torch.randn(3, 4)
            assert compiled(x.npu(), y.npu()).cpu().equal((x + y) * 2)
    """,
        prelude=OPS,
        ASCEND_CUSTOM_OPP_PATH=opp,
    )
